// Products and tables whose weights alone are quantised, at every instruction set of this machine,
// against the reference kernels.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators.h"

namespace tombolo {
namespace {

class WeightCodes : public Operators {
 protected:
  void SetUp() override {
    Operators::SetUp();
    opset_ = 25;  // integers of two bits
  }
  struct Kind {
    const char* name;
    int64_t low, high;
  };
  static constexpr Kind kKinds[] = {{"int8", -128, 127}, {"uint8", 0, 255}, {"int4", -8, 7},
                                    {"uint4", 0, 15},    {"int2", -2, 1},   {"uint2", 0, 3}};

  std::string codes(const Kind& kind, const std::string& name, const std::vector<int64_t>& dims) {
    return list(kind.name, name, dims, [&] {
      return std::to_string(
          kind.low +
          static_cast<int64_t>(engine_() % static_cast<uint64_t>(kind.high - kind.low + 1)));
    });
  }
  std::string scales(const std::string& name, const std::vector<int64_t>& dims) {
    return list("float", name, dims, [&] { return "0.0" + std::to_string(10 + engine_() % 80); });
  }

 private:
  template <typename Number>
  std::string list(const std::string& type, const std::string& name,
                   const std::vector<int64_t>& dims, const Number& number) {
    std::string text = type, values;
    for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "[" : ",") + std::to_string(dims[i]);
    if (!dims.empty()) text += "]";
    for (int64_t i = 0; i < element_count(dims); ++i) values += (i == 0 ? "" : ",") + number();
    return text + " " + name + " = {" + values + "}";
  }
};

TEST_P(WeightCodes, Products) {
  for (const Kind& kind : kKinds)
    for (const int64_t k : {5, 64, 300})
      for (const bool turned : {false, true}) {
        const int64_t n = k == 5 ? 35 : 70, blocks = (k + 31) / 32;
        const auto dims = [&](int64_t rows) {
          return turned ? std::vector<int64_t>{n, rows} : std::vector<int64_t>{rows, n};
        };
        const std::string axis = std::to_string(turned ? 0 : 1),
                          other = std::to_string(turned ? 1 : 0);
        const std::string size = std::to_string(k);
        const std::string product =
            turned ? "t = Transpose <perm = [1, 0]> (d) y = MatMul (x, t)" : "y = MatMul (x, d)";
        const auto check = [&](const std::string& constants, const std::string& attributes,
                               const std::string& inputs) {
          std::vector<std::vector<NamedValue>> turns;
          for (const int64_t rows : {1, 3, 40, 2})
            turns.push_back({{"x", numbers({2, rows, k}, 1)}});
          agree_in_turn("main (float[2,M," + size + "] x) => (y) <" + codes(kind, "w", dims(k)) +
                            "," + constants + "> { d = DequantizeLinear <" + attributes + "> (w, " +
                            inputs + ") " + product + " }",
                        turns, 2e-6);
        };
        check(scales("s", {n}) + "," + codes(kind, "z", {n}), "axis = " + axis, "s, z");
        check(scales("s", {n}), "axis = " + axis, "s");
        check(scales("s", {}) + "," + codes(kind, "z", {}), "", "s, z");
        const std::string block = "block_size = 32, axis = " + other;
        check(scales("s", dims(blocks)) + "," + codes(kind, "z", dims(blocks)), block, "s, z");
        check(scales("s", dims(blocks)), block, "s");
        check(scales("s", {k}), "axis = " + other, "s");  // along the sum: floats
      }
}

TEST_P(WeightCodes, GemmWithBias) {
  for (const Kind& kind : kKinds)
    for (const char* attributes : {"transB = 1", "transB = 1, alpha = 0.5"})
      agree("main (float[M,40] x) => (y) <" + codes(kind, "w", {20, 40}) + "," + scales("s", {20}) +
                "," + scales("b", {20}) + "> { d = DequantizeLinear <axis = 0> (w, s) y = Gemm <" +
                attributes + "> (x, d, b) }",
            {{"x", numbers({3, 40}, 1)}}, 2e-6);
}

TEST_P(WeightCodes, Tables) {
  for (const Kind& kind : kKinds) {
    const std::string head = "main (int64[2,N] i) => (y) <" + codes(kind, "w", {9, 20}) + "," +
                             scales("s", {9}) + "," + codes(kind, "z", {9}) + "," +
                             scales("c", {20}) + "> { d = DequantizeLinear ";
    for (const char* way : {"<axis = 0> (w, s, z)", "<axis = 0> (w, s)", "<axis = 1> (w, c)"})
      agree(head + way + " y = Gather (d, i) }", {{"i", places({2, 7}, 9)}});
  }
}

TEST_P(WeightCodes, OtherWeights) {
  const std::string s = "," + scales("s", {6});
  agree("main (float[1,4,9,9] x) => (y) <" + codes(kKinds[0], "w", {6, 4, 3, 3}) + s +
            "> { d = DequantizeLinear <axis = 0> (w, s) y = Conv (x, d) }",
        {{"x", numbers({1, 4, 9, 9}, 1)}}, 2e-6);
  agree("main (float[7,6,4] x) => (y) <" + codes(kKinds[1], "w", {7, 4, 6}) + s +
            "> { d = DequantizeLinear <axis = 2> (w, s) y = MatMul (x, d) }",
        {{"x", numbers({7, 6, 4}, 1)}}, 2e-6);
  // Scales that are computed, and columns of each their own.
  agree("main (int8[5,6] x, float[6] s) => (y) { y = DequantizeLinear <axis = -1> (x, s) }",
        {{"x", Tensor::of<int8_t>(
                   DType::kInt8, std::vector<int64_t>{5, 6},
                   std::vector<int8_t>{-128, 3, 4,  5,  6,  7,  8, 9, 1, 2, 3, 4,  5, 6, 7,
                                       8,    9, 10, 11, 12, 13, 1, 2, 3, 4, 5, -6, 7, 8, 127})},
         {"s", numbers({6}, 1)}});
}

INSTANTIATE_TEST_SUITE_P(Isa, WeightCodes,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
