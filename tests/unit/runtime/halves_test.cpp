// Models in float16 and bfloat16 where AMX multiplies them as sums of bf16, or VNNI as pairs of
// bytes: as near to the reference as their own type is.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "each_isa.h"
#include "ir/text/parser.h"
#include "runtime/kernels/isa.h"
#include "runtime/profile.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

class Halves : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!has_amx_bf16() && !has_vnni()) GTEST_SKIP() << "no AMX and no VNNI on this machine";
  }

  static bool f16() { return GetParam() == DType::kFloat16; }
  static std::string type() { return f16() ? "float16" : "bfloat16"; }
  static std::string dims(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
    return text + "]";
  }
  std::string constant(const std::string& name, const std::vector<int64_t>& shape,
                       bool positive = false) {
    std::string text = type() + dims(shape) + " " + name + " = {";
    for (int64_t i = 0; i < element_count(shape); ++i) {
      const float value = normal_(engine_);
      text += (i == 0 ? "" : ",") + std::to_string(positive ? std::abs(value) + 0.5f : value);
    }
    return text + "}";
  }

  /// main (float x) => (float y), computed in the type between; `depth`: products in a sum;
  /// `between`: by how much a sum is multiplied that only the reference rounds.
  void agree(const std::vector<int64_t>& x, const std::string& constants, const std::string& nodes,
             int64_t depth, const std::string& kernel, float between = 0) {
    const auto to = [](DType dtype) { return std::to_string(static_cast<int>(dtype)); };
    const std::string text = "<ir_version: 11, opset_import: [\"\" : 21]>\nmain (float" + dims(x) +
                             " given) => (y) <" + constants +
                             "> {\n x = Cast <to = " + to(GetParam()) + "> (given)\n" + nodes +
                             "\n y = Cast <to = " + to(DType::kFloat32) + "> (z)\n}\n";
    std::vector<float> numbers(static_cast<size_t>(element_count(x)));
    for (float& value : numbers) value = normal_(engine_);
    std::vector<float> results[2];
    for (const bool reference : {false, true}) {
      auto model = parse_text(text);
      ASSERT_TRUE(model) << model.error().message;
      // As files have them: text gives lists of numbers, which are scaled at once.
      Graph& graph = *(*model)->graph;
      for (Value* value : graph.initializers()) {
        Constant& weight = *value->initializer();
        auto tensor = weight.value(graph.storage_ptr());
        ASSERT_TRUE(tensor);
        // Copied: what belongs to the storage may not keep it alive.
        auto own = tensor->clone();
        ASSERT_TRUE(own);
        weight = Constant::from_tensor(*own, weight.name, graph.storage());
      }
      SessionOptions options;
      options.reference = reference;
      if (reference) options.optimise = 0;
      auto session = Session::create(*std::move(model), options);
      ASSERT_TRUE(session) << session.error().message;
      Profile profile;
      RunOptions how;
      how.profile = &profile;
      auto got = (*session)->run({{"given", Tensor::of<float>(DType::kFloat32, x, numbers)}}, how);
      ASSERT_TRUE(got) << got.error().message;
      const Tensor& y = (*got)[0].tensor();
      results[reference ? 1 : 0].assign(y.data<float>(), y.data<float>() + y.size());
      const bool found =
          std::any_of(profile.events.begin(), profile.events.end(),
                      [&](const auto& node) { return std::string(node.kernel) == kernel; });
      std::string kernels;
      for (const auto& node : profile.events) kernels += std::string(node.kernel) + " ";
      ASSERT_EQ(found, !reference) << kernel << " is not of " << kernels << "\n" << nodes;
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    // A step of the type where it is rounded; 2^-16 of each product, were they all of one sign, or
    // of the largest ones.
    const float step = f16() ? 0x1p-10f : 0x1p-7f;
    const auto terms = static_cast<float>(depth);
    const float each = has_amx_bf16() ? 0x1p-16f * terms : 0x1p-12f * std::sqrt(terms);
    const float lost = each + between * step * 3 * std::sqrt(terms);
    for (size_t i = 0; i < results[0].size(); ++i)
      ASSERT_NEAR(results[0][i], results[1][i], 1.01f * step * std::abs(results[1][i]) + lost)
          << i << "\n"
          << nodes;
  }

  const Streams one_{true};
  std::mt19937 engine_{23};
  std::normal_distribution<float> normal_;
};

TEST_P(Halves, Convolutions) {
  if (!has_amx_bf16()) GTEST_SKIP() << "no AMX on this machine";
  struct Conv {
    int64_t batch, in, out, height, width, kernel_y, kernel_x, stride, dilation, pad;
  };
  constexpr Conv kConvs[] = {{1, 32, 32, 5, 26, 3, 3, 1, 1, 1},  {2, 64, 72, 9, 7, 1, 1, 1, 1, 0},
                             {1, 24, 40, 13, 10, 3, 3, 2, 1, 1}, {1, 160, 33, 8, 11, 1, 1, 2, 1, 0},
                             {1, 17, 33, 12, 12, 5, 3, 1, 1, 2}, {2, 20, 16, 15, 9, 3, 5, 1, 2, 2},
                             {1, 40, 64, 12, 16, 3, 5, 3, 2, 3}, {1, 512, 16, 4, 4, 1, 1, 1, 1, 0},
                             {1, 16, 16, 8, 8, 4, 4, 1, 1, 0},   {1, 100, 36, 5, 7, 3, 3, 1, 1, 1}};
  for (const Conv& w : kConvs) {
    const auto two = [](int64_t value) {
      return std::to_string(value) + ", " + std::to_string(value);
    };
    // One that changes nothing before it, so that a region of blocked channels is worth while.
    std::string ones;
    for (int64_t i = 0; i < w.in * w.in; ++i)
      ones += std::string(i == 0 ? "" : ",") + (i % (w.in + 1) == 0 ? "1" : "0");
    const std::string conv = " i = Conv (x, one)\n v = Conv <strides = [" + two(w.stride) +
                             "], dilations = [" + two(w.dilation) + "], pads = [" + two(w.pad) +
                             ", " + two(w.pad) + "]> (i, w, b)\n";
    const std::string weights = constant("w", {w.out, w.in, w.kernel_y, w.kernel_x}) + ", " +
                                constant("b", {w.out}) + ", " + type() + dims({w.in, w.in, 1, 1}) +
                                " one = {" + ones + "}";
    const std::vector<int64_t> x = {w.batch, w.in, w.height, w.width};
    const int64_t depth = w.in * w.kernel_y * w.kernel_x;
    agree(x, weights, conv + " z = Relu (v)", depth, "block_conv_halves");
    // A BatchNormalization that is folded into the weights; scales up to about 3.
    agree(x,
          weights + ", " + constant("s", {w.out}) + ", " + constant("o", {w.out}) + ", " +
              constant("m", {w.out}) + ", " + constant("a", {w.out}, true),
          conv + " z = BatchNormalization (v, s, o, m, a)", 4 * depth, "block_conv_halves", 5);
    if (w.in == w.out && w.kernel_y == 3 && w.stride == 1)
      agree(x, weights, conv + " u = Add (v, i)\n z = Relu (u)", depth, "block_conv_halves", 1);
  }
}

// Of one pixel, by pairs of bytes: the scales of a BatchNormalization are folded into the weights.
TEST_P(Halves, PointwiseConvolutions) {
  if (has_amx_bf16()) GTEST_SKIP() << "AMX takes them";
  struct Conv {
    int64_t batch, in, out, height, width, stride;
  };
  for (const Conv& w : {Conv{1, 130, 136, 7, 9, 1}, {2, 128, 160, 9, 11, 2}}) {
    const std::string stride = std::to_string(w.stride);
    const std::string conv = " u = Conv <group = " + std::to_string(w.in) +
                             "> (x, c)\n v = Conv <strides = [" + stride + ", " + stride +
                             "]> (u, w, b)\n";
    const std::string weights = constant("w", {w.out, w.in, 1, 1}) + ", " + constant("b", {w.out}) +
                                ", " + constant("c", {w.in, 1, 1, 1});
    const std::vector<int64_t> x = {w.batch, w.in, w.height, w.width};
    agree(x, weights, conv + " z = Relu (v)", 4 * w.in, "block_conv_f32", 1);
    agree(x,
          weights + ", " + constant("s", {w.out}) + ", " + constant("o", {w.out}) + ", " +
              constant("m", {w.out}) + ", " + constant("a", {w.out}, true),
          conv + " z = BatchNormalization (v, s, o, m, a)", 16 * w.in, "block_conv_f32", 5);
  }
}

TEST_P(Halves, Products) {
  struct Shape {
    int64_t m, n, k;
  };
  for (const Shape& s : {Shape{16, 64, 64}, {33, 130, 200}, {128, 96, 700}, {300, 65, 65}})
    for (const bool turned : {false, true}) {
      const std::string weights =
          constant("w", turned ? std::vector<int64_t>{s.n, s.k} : std::vector<int64_t>{s.k, s.n}) +
          ", " + constant("b", {s.n});
      agree({s.m, s.k}, weights,
            turned ? " z = Gemm <transB = 1> (x, w, b)" : " v = MatMul (x, w)\n z = Add (v, b)",
            s.k, "fused_matmul_f32", turned ? 0 : 1);
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Halves, ::testing::Values(DType::kFloat16, DType::kBFloat16),
                         [](const auto& type) {
                           return std::string(type.param == DType::kFloat16 ? "float16"
                                                                            : "bfloat16");
                         });

}  // namespace
}  // namespace tombolo
