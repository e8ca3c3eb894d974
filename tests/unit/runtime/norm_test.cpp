// Norms, softmax and losses at every instruction set of this machine, against the reference
// kernels.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators.h"

namespace tombolo {
namespace {

class Norms : public Operators {};

TEST_P(Norms, SoftmaxOfFewColumns) {
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (const int64_t columns : {2, 3, 4, 8, 11, 12, 13, 70})
      for (const int64_t length : {1, 5, 37})
        agree("main (float[N,L,C] x) => (y) { y = " + std::string(op) + " <axis = 1> (x) }",
              {{"x", numbers({3, length, columns}, 3)}}, 1e-6);
}

TEST_P(Norms, SoftmaxOfSixteenBits) {
  for (const char* type : {"10", "16"})
    for (const int64_t outer : {2, 50})
      for (const int64_t columns : {1, 4, 11, 130})
        for (const int64_t length : {3, 5, 37})
          agree("main (float[N,L,C] x) => (y) {\n h = Cast <to = " + std::string(type) +
                    "> (x)\n s = Softmax <axis = 1> (h)\n y = Cast <to = 1> (s)\n}",
                {{"x", numbers({outer, length, columns}, 3)}}, 1e-2);
}

TEST_P(Norms, BatchNormalizationOfRows) {
  for (const int64_t channels : {1, 5, 16, 37, 130}) {
    const auto positive = [&] {
      Tensor x = numbers({channels}, 1);
      for (int64_t i = 0; i < channels; ++i) x.data<float>()[i] = std::fabs(x.data<float>()[i]) + 1;
      return x;
    };
    const std::vector<NamedValue> rest = {{"s", numbers({channels}, 1)},
                                          {"b", numbers({channels}, 1)},
                                          {"m", numbers({channels}, 1)},
                                          {"v", positive()}};
    const std::string node =
        " x, float[C] s, float[C] b, float[C] m, float[C] v) => (y) { y = BatchNormalization (x, "
        "s, b, m, v) }";
    std::vector<NamedValue> inputs = rest;
    inputs.insert(inputs.begin(), {"x", numbers({7, channels}, 2)});
    agree("main (float[N,C]" + node, inputs, 1e-6);
    inputs[0] = {"x", numbers({2, channels, 3}, 2)};
    agree("main (float[N,C,L]" + node, inputs, 1e-6);
    const std::string training =
        " x, float[C] s, float[C] b, float[C] m, float[C] v) => (y, p, q) { y, p, q = "
        "BatchNormalization <training_mode = 1, epsilon = 0.001, momentum = 0.7> (x, s, b, m, v) }";
    for (const int64_t length : {1, 2, 37}) {
      inputs[0] = {"x", numbers({5, channels, length}, 2)};
      agree("main (float[N,C,L]" + training, inputs, 2e-6);
    }
    inputs[0] = {"x", numbers({33, channels}, 2)};
    agree("main (float[N,C]" + training, inputs, 2e-6);
  }
}

TEST_P(Norms, NormsOfShortRows) {
  for (const int64_t width : {1, 3, 8, 15, 16, 17, 24, 32, 40, 63, 130, 256, 257}) {
    // Groups of rows and some beside, with numbers that are none in a few.
    for (const bool odd : {false, true}) {
      const std::vector<NamedValue> rows = {{"x", numbers({37, width}, 1, odd)},
                                            {"s", numbers({width}, 1)},
                                            {"b", numbers({width}, 1)}};
      const std::string head = "main (float[A,N] x, float[N] s, float[N] b) => (y";
      for (const char* call : {"LayerNormalization (x, s, b)", "LayerNormalization (x, s)",
                               "SimplifiedLayerNormalization <axis = -1> (x, s)"})
        agree(head + ") { y = " + call + " }", rows, 2e-6);
      agree(head + ", m, v) { y, m, v = LayerNormalization (x, s, b) }", rows, 2e-6);
      agree(head +
                ") { h = Cast <to = 10> (x) t = Cast <to = 10> (s) d = Cast <to = 10> (b) n = "
                "LayerNormalization (h, t, d) y = Cast <to = 1> (n) }",
            rows, 2e-3);
    }
  }
}

TEST_P(Norms, NormsOfPlanes) {
  for (const int64_t width : {1, 5, 16, 31, 32, 33, 100}) {
    const std::vector<NamedValue> inputs = {
        {"x", numbers({2, 6, 3, width}, 1)}, {"s", numbers({6}, 1)}, {"b", numbers({6}, 1)}};
    const std::string head = "main (float[A,6,3,B] x, float[6] s, float[6] b) => (y) { y = ";
    agree(head + "InstanceNormalization (x, s, b) }", inputs, 2e-6);
    agree(head + "GroupNormalization <num_groups = 3> (x, s, b) }", inputs, 2e-6);
    const std::vector<NamedValue> rows = {
        {"x", numbers({7, width}, 1)}, {"s", numbers({width}, 1)}, {"b", numbers({width}, 1)}};
    const std::string row = "main (float[A,N] x, float[N] s, float[N] b) => (y) { y = ";
    agree(row + "LayerNormalization (x, s, b) }", rows, 2e-6);
    agree(row + "LayerNormalization (x, s) }", rows, 2e-6);
    for (const char* call : {"GlobalAveragePool (x)", "GlobalMaxPool (x)",
                             "ReduceL1 <keepdims = 0> (x, axes)", "ReduceMin (x, axes)"})
      agree(
          "main (float[A,6,3,B] x) => (y) <int64[1] axes = {-1}> { y = " + std::string(call) + " }",
          {inputs[0]}, 2e-6);
  }
}

// As channels lie and, behind a convolution, in blocks of them.
TEST_P(Norms, LocalResponses) {
  for (const int64_t channels : {1, 3, 16, 20, 33, 70}) {
    std::string weights;
    for (int64_t c = 0; c < channels; ++c) weights += c == 0 ? "1,-2" : ",1,-2";
    const std::string count = std::to_string(channels),
                      head = "main (float[2," + count + ",H,W] x) => (y) ";
    for (const char* how :
         {"size = 5", "size = 2, beta = 0.5", "size = 1, alpha = 2.0, bias = 0.5",
          "size = 8, beta = 1.0", "size = 3, beta = 0.6, alpha = 0.3", "size = 1000, alpha = 1.0",
          "size = 3, alpha = 1e-35, bias = 1e-35", "size = 4, alpha = 1e30, bias = 0.0"})
      for (const bool odd : {false, true}) {
        const std::vector<NamedValue> inputs = {{"x", numbers({2, channels, 5, 7}, 1, odd)}};
        const std::string call = "LRN <" + std::string(how) + "> (";
        agree(head + "{ y = " + call + "x) }", inputs, 1e-6);
        agree(head + "<float[" + count + ",1,1,2] w = {" + weights + "}> { a = Conv <group = " +
                  count + "> (x, w) b = " + call + "a) y = MaxPool <kernel_shape = [2, 2]> (b) }",
              inputs, 1e-6);
      }
  }
}

TEST_P(Norms, Losses) {
  struct Shape {
    std::vector<int64_t> scores, targets;
  };
  const Shape shapes[] = {{{1, 2}, {1}},
                          {{5, 7}, {5}},
                          {{9, 130}, {9}},
                          {{3, 4, 33}, {3, 33}},
                          {{2, 21, 17, 19}, {2, 17, 19}}};
  for (const Shape& shape : shapes) {
    const int64_t classes = shape.scores[1];
    std::vector<float> scores(static_cast<size_t>(element_count(shape.scores)));
    for (float& score : scores) score = 3 * normal_(engine_);
    std::vector<int64_t> targets(static_cast<size_t>(element_count(shape.targets)));
    for (int64_t& target : targets)
      target = static_cast<int64_t>(engine_() % static_cast<uint32_t>(classes));
    if (targets.size() > 1) targets[1] = -1;
    targets.back() = 0;
    std::vector<float> weights(static_cast<size_t>(classes));
    for (float& weight : weights) weight = std::fabs(normal_(engine_)) + 0.1f;
    const std::vector<NamedValue> inputs = {
        {"x", Tensor::of<float>(DType::kFloat32, shape.scores, scores)},
        {"t", Tensor::of<int64_t>(DType::kInt64, shape.targets, targets)},
        {"w", Tensor::of<float>(DType::kFloat32, {{classes}}, weights)}};
    for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
      for (const char* reduction : {"none", "sum", "mean"})
        for (const bool short_targets : {false, true}) {
          const std::string call = std::string(op) + " <ignore_index = -1, reduction = \"" +
                                   reduction + "\"> (x, " + (short_targets ? "i" : "t");
          const std::string cast = short_targets ? "i = Cast <to = 6> (t)\n" : "";
          const std::string head = "main (float[] x, int64[] t, float[] w) => (y";
          agree(head + ") { " + cast + "y = " + call + ") }", inputs, 2e-6);
          agree(head + ") { " + cast + "y = " + call + ", w) }", inputs, 2e-6);
          if (op[0] == 'S')
            agree(head + ", l) { " + cast + "y, l = " + call + ", w) }", inputs, 2e-6);
        }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Norms,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
