// Single operators at every instruction set of this machine, against the reference kernels.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "each_isa.h"
#include "ir/text/parser.h"
#include "runtime/kernels/isa.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

class Operators : public EachIsa {
 protected:
  /// Numbers of either sign; some of them equal, some zero, now and then one that is none.
  Tensor numbers(std::initializer_list<int64_t> dims, float scale, bool odd = false) {
    const std::vector<int64_t> shape(dims);
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& value : values) {
      value = std::round(normal_(engine_) * 64) / 64 * scale;
      if (!odd) continue;
      if (engine_() % 40 == 0) value = std::numeric_limits<float>::quiet_NaN();
      if (engine_() % 40 == 0) value = engine_() % 2 == 0 ? INFINITY : -INFINITY;
    }
    return Tensor::of<float>(DType::kFloat32, shape, values);
  }

  /// Places along an axis, also counted from its end.
  Tensor places(std::initializer_list<int64_t> dims, int64_t length) {
    const std::vector<int64_t> shape(dims);
    std::vector<int64_t> values(static_cast<size_t>(element_count(shape)));
    for (int64_t& value : values)
      value = static_cast<int64_t>(engine_() % static_cast<uint32_t>(2 * length)) - length;
    return Tensor::of<int64_t>(DType::kInt64, shape, values);
  }

  /// Runs main (...) => (...) { nodes }, twice; outputs must be `error` apart at most, measured by
  /// the greatest number.
  void agree(const std::string& main, const std::vector<NamedValue>& inputs, double error = 0) {
    SessionOptions plain;
    plain.reference = true;
    plain.optimise = 0;
    const std::string text = "<ir_version: 10, opset_import: [\"\" : 21]>\n" + main;
    std::unique_ptr<Session> sessions[2];
    for (int i = 0; i < 2; ++i) {
      auto model = parse_text(text);
      ASSERT_TRUE(model) << model.error().message;
      auto session = Session::create(*std::move(model), i == 0 ? SessionOptions{} : plain);
      ASSERT_TRUE(session) << session.error().message;
      sessions[i] = *std::move(session);
    }
    for (int round = 0; round < 2; ++round) {
      auto got = sessions[0]->run(inputs), want = sessions[1]->run(inputs);
      ASSERT_TRUE(got) << main << got.error().where << ": " << got.error().message;
      ASSERT_TRUE(want) << main << want.error().message;
      for (size_t i = 0; i < want->size(); ++i) {
        const Tensor &a = (*got)[i].tensor(), &b = (*want)[i].tensor();
        if (error == 0 || a.dtype() != DType::kFloat32 || Dims(a.dims()) != Dims(b.dims())) {
          EXPECT_EQ(a, b) << main;
          continue;
        }
        double greatest = 0, apart = 0;
        for (int64_t j = 0; j < a.size(); ++j) {
          const auto p = static_cast<double>(a.data<float>()[j]),
                     q = static_cast<double>(b.data<float>()[j]);
          if (p == q || (p != p && q != q)) continue;
          greatest = std::max(greatest, std::fabs(q));
          apart = std::max(apart, p == p && q == q ? std::fabs(p - q) : INFINITY);
        }
        EXPECT_LE(apart, error * greatest) << main;
      }
    }
  }

  std::mt19937 engine_{11};
  std::normal_distribution<float> normal_;
};

TEST_P(Operators, GridSample) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const int aligned : {0, 1}) {
        const std::string node =
            "(float[N,C,H,W] x, float[N,h,w,2] g) => (y) { y = GridSample <mode = \"" +
            std::string(mode) + "\", padding_mode = \"" + padding +
            "\", align_corners = " + std::to_string(aligned) + "> (x, g) }";
        // Few channels and many, few points and many, an axis of one element.
        agree("main " + node,
              {{"x", numbers({2, 3, 5, 7}, 1)}, {"g", numbers({2, 9, 16, 2}, 0.7f, true)}}, 1e-6);
        agree("main " + node,
              {{"x", numbers({1, 21, 6, 1}, 1, true)}, {"g", numbers({1, 13, 11, 2}, 0.7f, true)}},
              1e-6);
        agree("main " + node, {{"x", numbers({1, 9, 40, 30}, 1)}, {"g", numbers({1, 1, 3, 2}, 1)}},
              1e-6);
        if (std::string(mode) != "cubic")
          agree("main (float[N,C,D,H,W] x, float[N,d,h,w,3] g) => (y) { y = GridSample <mode = \"" +
                    std::string(mode) + "\", padding_mode = \"" + padding +
                    "\", align_corners = " + std::to_string(aligned) + "> (x, g) }",
                {{"x", numbers({1, 12, 3, 4, 5}, 1)}, {"g", numbers({1, 3, 4, 7, 3}, 0.7f, true)}},
                1e-6);
      }
}

TEST_P(Operators, TopK) {
  const Tensor equal =
      Tensor::of<float>(DType::kFloat32, std::vector<int64_t>{2, 200}, std::vector<float>(400, 3));
  for (const int largest : {0, 1})
    for (const int64_t k : {1, 2, 5, 16, 17, 24, 25, 60}) {
      const auto node = [&](int axis) {
        return "main (float[N,M] x) => (y, i) <int64[1] k = {" + std::to_string(k) +
               "}> { y, i = TopK <largest = " + std::to_string(largest) +
               ", axis = " + std::to_string(axis) + "> (x, k) }";
      };
      for (const int64_t n : {2, 8, 31, 32, 33}) {
        if (k <= n) agree(node(1), {{"x", numbers({5, n}, 0.02f, true)}});
      }
      for (const int64_t n : {60, 63, 64, 65, 127, 128, 129, 256, 1100, 2500}) {
        agree(node(1), {{"x", numbers({3, n}, 1)}});
        agree(node(1), {{"x", numbers({3, n}, 0.02f, true)}});
      }
      agree(node(0), {{"x", numbers({130, 19}, 1, true)}});
      agree(node(1), {{"x", equal}});
    }
}

TEST_P(Operators, SoftmaxOfFewColumns) {
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (const int64_t columns : {2, 3, 4, 8, 11, 12, 13, 70})
      for (const int64_t length : {1, 5, 37})
        agree("main (float[N,L,C] x) => (y) { y = " + std::string(op) + " <axis = 1> (x) }",
              {{"x", numbers({3, length, columns}, 3)}}, 1e-6);
}

TEST_P(Operators, BatchNormalizationOfRows) {
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
  }
}

TEST_P(Operators, Pools) {
  for (const char* attributes :
       {"kernel_shape = [3, 3], strides = [2, 2]", "kernel_shape = [2, 2], strides = [2, 2]",
        "kernel_shape = [3, 3], pads = [1, 1, 1, 1]", "kernel_shape = [1, 4], strides = [1, 2]",
        "kernel_shape = [5, 3], strides = [3, 3], pads = [2, 1, 0, 1], ceil_mode = 1",
        "kernel_shape = [3, 2], dilations = [2, 3], strides = [1, 2], pads = [0, 1, 1, 0]"})
    for (const int64_t width : {7, 15, 16, 17, 32, 33, 40}) {
      const std::string rest = std::string(attributes) + "> (x) }";
      const auto plain = numbers({1, 3, 9, width}, 1), odd = numbers({2, 2, 9, width}, 1, true);
      for (const Tensor& x : {plain, odd}) {
        agree("main (float[N,C,H,W] x) => (y) { y = MaxPool <" + rest, {{"x", x}});
        agree("main (float[N,C,H,W] x) => (y) { y = AveragePool <" + rest, {{"x", x}}, 1e-6);
        agree("main (float[N,C,H,W] x) => (y) { y = AveragePool <count_include_pad = 1, " + rest,
              {{"x", x}}, 1e-6);
      }
      for (const int p : {1, 2, 3})
        agree("main (float[N,C,H,W] x) => (y) { y = LpPool <p = " + std::to_string(p) + ", " + rest,
              {{"x", plain}}, 1e-6);
    }
}

TEST_P(Operators, Col2Im) {
  for (const int64_t width : {5, 16, 17, 23, 40, 67})
    for (const int stride : {1, 2, 3})
      for (const int pad : {0, 2}) {
        const int64_t blocks = (width + 2 * pad - 3) / stride + 1, rows = (6 + 2 * pad - 2) / 1 + 1;
        const std::string text =
            "_t[N,C,L] x) => (y) <int64[2] i = {6, " + std::to_string(width) +
            "}, int64[2] b = {2, 3}> {\n c = Cast <to = _n> (x)\n y = Col2Im <strides = [1, " +
            std::to_string(stride) + "], pads = [" + std::to_string(pad) + ", " +
            std::to_string(pad) + ", " + std::to_string(pad) + ", " + std::to_string(pad) +
            "]> (c, i, b) }";
        for (const int type : {1, 11, 6, 7}) {
          std::string main = "main (float" + text.substr(2);
          main.replace(main.find("_n"), 2, std::to_string(type));
          agree(main, {{"x", numbers({2, 18, blocks * rows}, 8)}}, 1e-6);
        }
      }
}

TEST_P(Operators, Gathers) {
  const std::string data = "main (float[A,B,C] x, int64[";
  for (const int64_t piece : {1, 2, 3, 4, 16, 33}) {
    const Tensor x = numbers({6, 6, piece}, 1);
    agree(data + "N,M] i) => (y) { y = GatherND (x, i) }", {{"x", x}, {"i", places({50, 1}, 6)}});
    agree(data + "N,M,T] i) => (y) { y = GatherND (x, i) }",
          {{"x", x}, {"i", places({3, 17, 2}, 6)}});
    agree(data + "N,M,T] i) => (y) { y = GatherND <batch_dims = 1> (x, i) }",
          {{"x", x}, {"i", places({6, 5, 1}, 6)}});
    agree(data + "N,M] i) => (y) { y = Gather <axis = 1> (x, i) }",
          {{"x", x}, {"i", places({3, 7}, 6)}});
  }
  agree(data + "N,T] i) => (y) { y = GatherND (x, i) }",
        {{"x", numbers({5, 5, 5}, 1)}, {"i", places({40, 3}, 5)}});
}

TEST_P(Operators, BroadcastsAlongShortRows) {
  struct Shapes {
    std::initializer_list<int64_t> a, b;
  };
  const Shapes shapes[] = {
      {{512, 5, 1}, {1, 5, 16}},    {{9, 300, 7}, {9, 1, 7}},
      {{700, 3}, {700, 1}},         {{50, 64}, {64}},
      {{3, 40, 1}, {2, 3, 40, 24}}, {{1, 2}, {900, 1}},
      {{5, 300, 1}, {1, 300, 33}},  {{2, 1, 90, 1}, {1, 8, 1, 9}},
  };
  for (const auto& [a, b] : shapes)
    for (const char* type : {"uint8", "float16", "float", "double"})
      for (const char* op : {"Sub", "Less"})
        agree("main (float[" + std::string("A,B,C,D").substr(0, 2 * a.size() - 1) + "] a, float[" +
                  std::string("E,F,G,H").substr(0, 2 * b.size() - 1) + "] b) => (y) <" + type +
                  "[1] o = {1}> { c = CastLike (a, o) d = CastLike (b, o) y = " + op + " (c, d) }",
              {{"a", numbers(a, 3)}, {"b", numbers(b, 3)}});
}

TEST_P(Operators, MultipliesByNarrowMatrices) {
  for (const int64_t k : {1, 3, 4, 6, 8, 9})
    for (const int64_t n : {1, 2, 4, 5, 8}) {
      for (const int64_t m : {31, 32, 33, 47, 200}) {
        agree("main (float[M,K] a, float[K,N] b) => (y) { y = MatMul (a, b) }",
              {{"a", numbers({m, k}, 1)}, {"b", numbers({k, n}, 1)}}, 1e-6);
        agree(
            "main (float[M,K] a, float[N,K] b, float[N] c) => (y) { y = Gemm <transB = 1, alpha "
            "= 0.5> (a, b, c) }",
            {{"a", numbers({m, k}, 1)}, {"b", numbers({n, k}, 1)}, {"c", numbers({n}, 1)}}, 1e-6);
      }
      // What is added lies where the product goes; a function follows.
      agree(
          "main (float[A,B,K] a, float[K,N] b, float[A,B,N] z) => (y) { p = MatMul (a, b) r = "
          "Neg (z) s = Add (p, r) y = Relu (s) }",
          {{"a", numbers({3, 50, k}, 1)}, {"b", numbers({k, n}, 1)}, {"z", numbers({3, 50, n}, 1)}},
          1e-6);
      agree("main (float[A,B,K] a, float[A,K,N] b) => (y) { p = MatMul (a, b) y = Gelu (p) }",
            {{"a", numbers({3, 50, k}, 1)}, {"b", numbers({3, k, n}, 1)}}, 1e-6);
    }
}

TEST_P(Operators, GathersOfSmallPieces) {
  for (const char* type : {"uint8", "float16", "float", "int64", "complex128"})
    for (const int64_t inner : {1, 2, 3}) {
      const std::string cast = std::string(type) == "complex128"
                                   ? "y = Gather <axis = 1> (x, i)"
                                   : "c = CastLike (x, o) d = Gather <axis = 1> (c, i) y "
                                     "= CastLike (d, x)";
      const std::string like = std::string(type) == "complex128" ? "float" : type;
      for (const int64_t count : {1, 7, 300})
        agree("main (float[N,M,L] x, int64[K] i) => (y) <" + like + "[1] o = {1}> { " + cast + " }",
              {{"x", numbers({40, 6, inner}, 1)}, {"i", places({count}, 6)}});
    }
  agree("main (float[N,M] x, int64 i) => (y) { y = Gather <axis = 1> (x, i) }",
        {{"x", numbers({33, 1}, 1)}, {"i", Tensor::scalar_int64(-1)}});
}

TEST_P(Operators, Expands) {
  const auto shape = [](std::vector<int64_t> dims) {
    const int64_t size[] = {static_cast<int64_t>(dims.size())};
    return Tensor::of<int64_t>(DType::kInt64, size, dims);
  };
  for (const char* type : {"uint8", "float16", "float", "int64"}) {
    const std::string main = "main (float[A,B,C,D] x, int64[R] s) => (y) <" + std::string(type) +
                             "[1] o = {1}> { c = CastLike (x, o) y = Expand (c, s) }";
    agree(main, {{"x", numbers({1, 3, 1, 5}, 9)}, {"s", shape({2, 3, 4, 5})}});
    agree(main, {{"x", numbers({1, 3, 4, 1}, 9)}, {"s", shape({6, 1, 1, 1, 1, 7})}});
    agree(main, {{"x", numbers({2, 1, 1, 3}, 9)}, {"s", shape({1})}});
    agree(main, {{"x", numbers({1, 1, 1, 1}, 9)}, {"s", shape({3, 200, 1, 70})}});
    agree(main, {{"x", numbers({2, 1, 70, 1}, 9)}, {"s", shape({1, 90, 1, 3})}});
    agree(main, {{"x", numbers({1, 3, 1, 5}, 9)}, {"s", shape({0, 1, 4, 5})}});
  }
}

TEST_P(Operators, ScattersOfTuples) {
  const auto main = [](const char* inputs) {
    return "main (" + std::string(inputs) +
           ") => (y, z) { y = ScatterND (x, i, u) n = Neg (x) z = ScatterND (n, i, u) }";
  };
  // Each place once or more often: the last one stays.
  for (const int64_t count : {1, 50, 4000}) {
    agree(main("float[A,B,C] x, int64[K,T] i, float[K] u"),
          {{"x", numbers({5, 5, 5}, 1)}, {"i", places({count, 3}, 5)}, {"u", numbers({count}, 1)}});
    agree(main("float[A,B,C] x, int64[K,T] i, float[K,C] u"), {{"x", numbers({5, 5, 7}, 1)},
                                                               {"i", places({count, 2}, 5)},
                                                               {"u", numbers({count, 7}, 1)}});
    agree(main("float[A,B,C] x, int64[K,L,T] i, float[K,L,B,C] u"),
          {{"x", numbers({5, 2, 3}, 1)},
           {"i", places({2, count, 1}, 5)},
           {"u", numbers({2, count, 2, 3}, 1)}});
  }
}

TEST_P(Operators, NonMaxSuppression) {
  for (const int centred : {0, 1})
    for (const bool odd : {false, true})
      for (const int64_t count : {1, 40, 700}) {
        const auto main = [&](const char* more, const char* names) {
          return "main (float[N,B,4] b, float[N,C,B] s" + std::string(more) +
                 ") => (y) <int64 most = {300}> { y = NonMaxSuppression <center_point_box = " +
                 std::to_string(centred) + "> (b, s, most" + names + ") }";
        };
        const std::vector<NamedValue> inputs = {{"b", numbers({2, count, 4}, 1, odd)},
                                                {"s", numbers({2, 3, count}, 1, odd)},
                                                {"i", Tensor::scalar_float(0.3f)},
                                                {"t", Tensor::scalar_float(-0.5f)}};
        agree(main(", float i, float t", ", i, t"), inputs);
        agree(main(", float i", ", i"), {inputs[0], inputs[1], inputs[2]});
        agree(main("", ""), {inputs[0], inputs[1]});
      }
}

TEST_P(Operators, TransposesOfNarrowElements) {
  for (const char* type : {"uint8", "float16"})
    for (const int64_t rows : {5, 8, 16, 33, 70, 130})
      for (const int64_t columns : {7, 8, 17, 64, 97})
        agree("main (float[N,A,B] x) => (y) <" + std::string(type) +
                  "[1] o = {1}> { c = CastLike (x, o) y = Transpose <perm = [0, 2, 1]> (c) }",
              {{"x", numbers({2, rows, columns}, 30)}});
}

TEST_P(Operators, Compress) {
  for (const int type : {1, 2, 10, 7})  // of four, one, two and eight bytes
    for (const int some : {0, 1, 2, 7}) {
      std::vector<uint8_t> flags(12);
      for (uint8_t& flag : flags) flag = static_cast<int>(engine_() % 7) < some;
      for (const char* axis : {"", "<axis = 0> ", "<axis = 1> ", "<axis = -1> "}) {
        const Tensor kept = Tensor::of<uint8_t>(DType::kUInt8, std::vector<int64_t>{12}, flags);
        agree(
            "main (float[A,B,C] x, uint8[K] k) => (y) {\n c = Cast <to = " + std::to_string(type) +
                "> (x)\n b = Cast <to = 9> (k)\n y = Compress " + axis + "(c, b) }",
            {{"x", numbers({12, 13, 14}, 4)}, {"k", kept}});
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Isa, Operators,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
