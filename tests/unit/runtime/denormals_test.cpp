// Numbers too small to be normal, as weight decay leaves them where channels have died: products
// take them for zero, on every thread; what is done to single numbers does not.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/float_control.h"
#include "base/thread_pool.h"
#include "each_isa.h"
#include "ir/text/parser.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

class Denormals : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, Denormals,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

/// `count` weights, all of them denormal.
std::string tiny(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += i == 0 ? "1e-40" : ", 1e-40";
  return text + "}";
}

// Inputs of 1e20 would make such weights count; what matters is that no kernel meets them.
TEST_P(Denormals, AreZeroInProducts) {
  const struct {
    std::string main;
    std::vector<int64_t> x;
  } kCases[] = {
      {"g (float[1,16,6,6] x) => (float[] y) <float[16,16,3,3] w = " + tiny(16 * 16 * 9) +
           "> { y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
       {1, 16, 6, 6}},
      {"g (float[1,3,6,6] x) => (float[] y) <float[4,3,1,1] w = " + tiny(12) +
           "> { y = Conv (x, w) }",
       {1, 3, 6, 6}},
      {"g (float[1,8,9,9] x) => (float[] y) <float[8,1,3,3] w = " + tiny(72) +
           "> { y = Conv <group = 8> (x, w) }",
       {1, 8, 9, 9}},
      {"g (float[1,16,5,5] x) => (float[] y) <float[16,16,2,2] w = " + tiny(16 * 64) +
           "> { y = ConvTranspose <strides = [2, 2]> (x, w) }",
       {1, 16, 5, 5}},
      {"g (float[40,24] x) => (float[] y) <float[24,40] w = " + tiny(24 * 40) +
           "> { y = MatMul (x, w) }",
       {40, 24}},
      {"g (float[2,200] x) => (float[] y) <float[3,200] w = " + tiny(600) +
           "> { y = Gemm <transB = 1> (x, w) }",
       {2, 200}},
  };
  for (const auto& [main, dims] : kCases) {
    SCOPED_TRACE(main.substr(main.rfind('{')));
    auto model = parse_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + main);
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*std::move(model), SessionOptions{});
    ASSERT_TRUE(session) << session.error().message;
    const std::vector<float> x(static_cast<size_t>(element_count(dims)), 1e20f);
    const auto got =
        (*session)->run({{"x", RunValue(Tensor::of<float>(DType::kFloat32, dims, x))}});
    ASSERT_TRUE(got) << got.error().message;
    const Tensor& y = (*got)[0].tensor();
    for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.data<float>()[i], 0.0f) << i;
  }
}

TEST_P(Denormals, AreWhatTheyAreElsewhere) {
  const uint64_t before = float_control();
  auto model = parse_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[2,2] x) => (float[2,2] y, float[2,2] z) <float[2,2] w = {1, 0, 0, 1}> {"
      "  y = MatMul (x, w)  z = Log (x) }");
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*std::move(model), SessionOptions{});
  ASSERT_TRUE(session) << session.error().message;
  const int64_t dims[] = {2, 2};
  const float x[] = {1e-40f, 1, 2, 1e-42f};
  const auto got = (*session)->run({{"x", RunValue(Tensor::of<float>(DType::kFloat32, dims, x))}});
  ASSERT_TRUE(got) << got.error().message;
  const float* const z = (*got)[1].tensor().data<float>();
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(z[i], std::log(x[i]), 1e-4) << i;
  EXPECT_EQ(float_control() & ~uint64_t{0x3f}, before & ~uint64_t{0x3f});
}

// What one thread asks for, those that work for it do.
TEST(DenormalsOfThreads, FollowTheCaller) {
  set_thread_count(2);
  for (const bool without : {true, false, true}) {
    std::vector<float> product(64);
    volatile float tiny = 1e-40f;
    const auto multiply = [&] {
      parallel_for(
          64, 1,
          [](void* argument, int64_t begin, int64_t end) {
            auto& [to, number] = *static_cast<std::pair<float*, volatile float*>*>(argument);
            for (int64_t i = begin; i < end; ++i) {
              for (int k = 0; k < 2000; ++k) to[i] = *number * 1e20f;
            }
          },
          std::array{std::pair<float*, volatile float*>{product.data(), &tiny}}.data());
    };
    if (without) {
      const WithoutDenormals zero;
      multiply();
    } else {
      multiply();
    }
    for (const float x : product) ASSERT_EQ(x == 0, without);
  }
  set_thread_count(0);
}

}  // namespace
}  // namespace tombolo
