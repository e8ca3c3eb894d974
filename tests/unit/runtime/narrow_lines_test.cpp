// Lines along an axis with few numbers behind it, of which blocks are turned together, and products
// of few columns: against the reference's.

#include "operators.h"

namespace tombolo {
namespace {

class NarrowLines : public Operators {
 protected:
  /// Blocks, numbers of a line, lines beside one another.
  static constexpr int64_t kShapes[][3] = {{70, 17, 3}, {33, 5, 13}, {9, 100, 2},  {65, 3, 8},
                                           {40, 12, 4}, {21, 33, 5}, {128, 20, 1}, {7, 9, 2},
                                           {16, 2, 15}, {10, 256, 4}};

  /// Of a node that makes z.
  static std::string main_of(const std::string& node, int type = 1) {
    return "main (float[A,B,C] g) => (y) { x = Cast <to = " + std::to_string(type) + "> (g) " +
           node + " y = Cast <to = 1> (z) }";
  }
  std::string floats_of(const std::string& name, std::vector<int64_t> dims) {
    const Tensor values = numbers(dims, 1);
    std::string text = "float[", separator;
    for (const int64_t dim : dims) {
      text += separator + std::to_string(dim);
      separator = ",";
    }
    text += "] " + name + " = {";
    separator = "";
    for (const float value : values.span<float>()) {
      text += separator + std::to_string(value);
      separator = ",";
    }
    return text + "}";
  }
  void each_shape(const auto& check) {
    for (const auto& [blocks, n, inner] : kShapes) check(std::vector<int64_t>{blocks, n, inner});
  }
};

TEST_P(NarrowLines, NormsAndExtremes) {
  each_shape([&](const std::vector<int64_t>& shape) {
    for (const bool nan : {false, true})
      for (const int type : {1, 11, 10}) {
        const Tensor x = numbers(shape, 1, nan);
        const double error = type == 10 ? 1e-3 : 1e-6;
        for (const char* op : {"Softmax", "LogSoftmax"})
          agree(main_of(std::string("z = ") + op + " <axis = 1> (x)", type), {{"g", x}}, error);
        if (type == 10) continue;
        for (const char* node : {"Hardmax <axis = 1> (x)", "LpNormalization <axis = 1, p = 1> (x)",
                                 "LpNormalization <axis = 1> (x)", "ArgMax <axis = 1> (x)",
                                 "ArgMin <axis = 1, select_last_index = 1> (x)"})
          agree(main_of(std::string("z = ") + node, type), {{"g", x}}, error);
      }
  });
}

TEST_P(NarrowLines, ReductionsAndSums) {
  opset_ = 18;
  each_shape([&](const std::vector<int64_t>& shape) {
    for (const int type : {1, 11, 6, 7}) {
      const Tensor x = numbers(shape, 30, type != 6 && type != 7);
      for (const char* op : {"ReduceMax", "ReduceMin", "ReduceSum"})
        agree(main_of("a = Constant <value = int64[1] {1}> () z = " + std::string(op) + " (x, a)",
                      type),
              {{"g", x}}, 1e-5);
      for (const char* attributes : {"", "<exclusive = 1>", "<reverse = 1>"})
        agree(main_of("a = Constant <value = int64 {1}> () z = CumSum " + std::string(attributes) +
                          " (x, a)",
                      type),
              {{"g", x}}, 1e-5);
    }
  });
}

TEST_P(NarrowLines, BestAndPicked) {
  each_shape([&](const std::vector<int64_t>& shape) {
    for (const int type : {1, 6}) {
      const Tensor x = numbers(shape, 30);  // with equal ones among the integers
      for (const int64_t k : {1, 2, 9})
        for (const char* attributes : {"", ", largest = 0", ", sorted = 0"})
          if (k <= shape[1])
            agree("main (float[A,B,C] g) => (y, z) { x = Cast <to = " + std::to_string(type) +
                      "> (g) k = Constant <value = int64[1] {" + std::to_string(k) +
                      "}> () y, z = TopK <axis = 1" + attributes + "> (x, k) }",
                  {{"g", x}});
    }
    for (const int64_t picked : {int64_t{1}, shape[1] + 3}) {
      const std::string main =
          "main (float[A,B,C] g, int64[A,D,C] p) => (y) { y = GatherElements <axis = 1> (g, p) }";
      Tensor p = places({shape[0], picked, shape[2]}, shape[1]);
      agree(main, {{"g", numbers(shape, 1)}, {"p", p}});
      p.span<int64_t>().back() = shape[1];
      refuse(main, {{"g", numbers(shape, 1)}, {"p", p}}, "out of range");
    }
  });
}

// Columns that end within a vector, within a panel and with it; sums that registers hold and longer
// ones.
TEST_P(NarrowLines, ProductsOfFewColumns) {
  for (const int64_t k : {1, 2, 5, 10, 12, 13, 16, 17, 33})
    for (const int64_t n : {1, 3, 7, 8, 9, 16, 17, 24, 31, 32, 33, 50})
      for (const int64_t m : {1, 13, 40, 133}) {
        const std::string b = floats_of("w", {k, n}), c = floats_of("c", {n});
        const Tensor a = numbers({m, k}, 1);
        agree("main (float[M,K] a) => (y) <" + b + "> { y = MatMul (a, w) }", {{"a", a}}, 1e-6);
        agree("main (float[M,K] a) => (y) <" + b + ", " + c +
                  "> { p = MatMul (a, w) s = Add (p, c) y = Relu (s) }",
              {{"a", a}}, 1e-6);
        if (m > 100 || k > 16) continue;
        agree("main (float[B,M,K] a, float[B,K,N] b) => (y) { y = MatMul (a, b) }",
              {{"a", numbers({3, m, k}, 1)}, {"b", numbers({3, k, n}, 1)}}, 1e-6);
      }
}

INSTANTIATE_TEST_SUITE_P(Isa, NarrowLines,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
