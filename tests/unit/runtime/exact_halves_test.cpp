// Weights of float32 that 16 bits hold exactly: half of the memory, and the same bits.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "each_isa.h"
#include "ir/text/parser.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

constexpr int64_t kDepth = 300;

class ExactHalves : public EachIsa {
 protected:
  // With AMX many rows are multiplied as digits (gemm_digits_test.cpp).
  void SetUp() override {
    EachIsa::SetUp();
    limit_extras(Extras::kDot);
  }
  void TearDown() override {
    limit_extras(Extras::kTiles);
    EachIsa::TearDown();
  }

  struct Result {
    std::vector<float> y;
    uint64_t packed = 0;
  };
  /// x [rows, 300] times weights [columns, 300] turned, or [300, columns].
  static Result multiply(const std::vector<float>& x, const std::vector<float>& weights,
                         bool turned) {
    const auto rows = static_cast<int64_t>(x.size()) / kDepth;
    const auto columns = static_cast<int64_t>(weights.size()) / kDepth;
    std::string text =
        "<ir_version: 11, opset_import: [\"\" : 21]>\nmain (float[n,300] x) => (y) <float[";
    text += turned ? std::to_string(columns) + ",300" : "300," + std::to_string(columns);
    text += "] w = {";
    for (size_t i = 0; i < weights.size(); ++i) {
      char number[32];
      std::snprintf(number, sizeof number, i == 0 ? "%.9g" : ",%.9g", double{weights[i]});
      text += number;
    }
    text += turned ? "}> {\n y = Gemm <transB = 1> (x, w)\n}\n" : "}> {\n y = MatMul (x, w)\n}\n";
    auto model = parse_text(text);
    EXPECT_TRUE(model) << model.error().message;
    if (!model) return {};
    auto session = Session::create(*std::move(model));
    EXPECT_TRUE(session) << session.error().message;
    if (!session) return {};
    const std::vector<int64_t> dims = {rows, kDepth};
    auto got = (*session)->run({{"x", Tensor::of<float>(DType::kFloat32, dims, x)}});
    EXPECT_TRUE(got) << got.error().message;
    if (!got) return {};
    const Tensor& y = (*got)[0].tensor();
    return {std::vector<float>(y.data<float>(), y.data<float>() + y.size()),
            (*session)->packed_bytes()};
  }

  /// Numbers whose last `bits` bits are zeros.
  std::vector<float> numbers(int64_t count, int bits) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values)
      value = std::bit_cast<float>(std::bit_cast<uint32_t>(normal_(engine_)) >> bits << bits);
    return values;
  }

 private:
  std::mt19937 engine_{5};
  std::normal_distribution<float> normal_;
};

TEST_P(ExactHalves, GiveTheSameBitsAndTakeHalfTheMemory) {
  constexpr int64_t kColumns = 256;
  for (const int bits : {13, 16})  // float16; bfloat16
    for (const bool turned : {false, true})
      for (const int64_t rows : {1, 3, 20}) {
        const std::vector<float> x = numbers(rows * kDepth, 0);
        std::vector<float> weights = numbers(kColumns * kDepth, bits);
        for (float& weight : weights)
          if (std::abs(weight) < 0x1p-14f) weight = 0.5f;  // fewer bits in float16
        weights[7] = -0.0f;
        weights[11] = bits == 13 ? 0x1.8p-23f : 0x1.8p-130f;  // denormal there
        const Result exact = multiply(x, weights, turned);
        // The last weight of the last column is not to be had in 16 bits: all stay floats.
        weights.back() = 0.1f;
        const Result floats = multiply(x, weights, turned);
        ASSERT_EQ(exact.y.size(), floats.y.size());
        for (size_t i = 0; i < exact.y.size(); ++i)
          if (i % kColumns != kColumns - 1) {
            ASSERT_EQ(exact.y[i], floats.y[i]) << i;
          }
        if (GetParam() >= Isa::kAvx2) {
          EXPECT_LT(exact.packed * 19, floats.packed * 10);
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Levels, ExactHalves,
                         ::testing::Values(Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& level) { return std::string(name_of(level.param)); });

}  // namespace
}  // namespace tombolo
