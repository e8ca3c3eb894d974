// Convolutions of one pixel by pairs of bytes, against sums in double.

#include "runtime/kernels/conv/halves_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "blocked_problem.h"
#include "each_isa.h"
#include "runtime/kernels/elementwise/convert.h"

namespace tombolo {
namespace {

constexpr BlockedCase kCases[] = {{1, 64, 256, 8, 7, 1, 1},       {2, 130, 144, 9, 6, 1, 1},
                                  {1, 100, 170, 31, 13, 1, 1, 2}, {3, 384, 200, 5, 10, 1, 1, 3},
                                  {1, 70, 258, 60, 60, 1, 1},     {1, 1024, 256, 7, 7, 1, 1}};

class HalvesConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!halves_conv_fits(shape_of(kCases[0]))) GTEST_SKIP() << "no VNNI on this machine";
  }
  void TearDown() override { set_thread_count(0); }

  std::vector<float> numbers(int64_t count) {
    std::vector<float> all(static_cast<size_t>(count));
    for (float& x : all) x = normal_(engine_);
    return all;
  }
  BlockedProblem problem(const BlockedCase& c) {
    BlockedProblem p{.s = shape_of(c)};
    p.x = numbers(c.batch * p.in_floats());
    p.w = numbers(c.out_channels * c.in_channels);
    std::vector<uint16_t> halves(p.w.size());
    const auto count = static_cast<int64_t>(p.w.size());
    f32_to_f16(p.w.data(), halves.data(), count);
    f16_to_f32(halves.data(), p.w.data(), count);
    return p;
  }
  /// The weights, packed; their first byte tells whether they can be taken.
  static Bytes pack(const BlockedProblem& p) {
    const HalvesConv plan = plan_halves_conv(p.s);
    Bytes packed = bytes(plan.weight_bytes);
    pack_halves_conv(plan, p.w.data(), packed.get());
    return packed;
  }
  /// What is added lies where the results go.
  static std::vector<float> run(const BlockedProblem& p, const std::byte* packed) {
    std::vector<float> y = p.residual;
    y.resize(static_cast<size_t>(p.s.batch * p.out_floats()));
    ConvEpilogue e = p.epilogue();
    if (e.residual != nullptr) e.residual = y.data();
    run_halves_conv(plan_halves_conv(p.s), p.x.data(), packed, y.data(), e);
    return y;
  }

  const Streams one_{true};
  std::mt19937 engine_{11};
  std::normal_distribution<float> normal_;
};

TEST_F(HalvesConvolution, Agrees) {
  using Kind = Activation::Kind;
  const Activation activations[] = {{}, {Kind::kClamp, -1, 30}, {Kind::kSwish, 1}};
  size_t turn = 0;
  for (const BlockedCase& c : kCases)
    for (const bool odd : {false, true}) {
      BlockedProblem p = problem(c);
      p.spoil_lanes();
      // A number far above the others is for floats, and so are its neighbours then; so is one
      // panel of weights out of eight.
      if (odd) p.x[p.input_at(c.batch - 1, 3, 0)] = 1e6f;
      if (odd && c.out_channels >= 256) p.w[static_cast<size_t>(37 * c.in_channels + 5)] = 1e4f;
      p.bias = numbers(blocks_of(c.out_channels) * kBlock);
      p.residual = numbers(c.batch * p.out_floats());
      p.activation = activations[turn++ % std::size(activations)];
      const Bytes packed = pack(p);
      ASSERT_TRUE(halves_conv_packed(packed.get()));
      set_thread_count(1);
      const std::vector<float> y = run(p, packed.get());
      for (const int threads : {2, 3}) {
        set_thread_count(threads);
        const std::vector<float> other = run(p, packed.get());
        p.each([&](size_t at) { ASSERT_EQ(other[at], y[at]) << threads << " threads"; });
      }
      p.each_result([&](int64_t n, int64_t o, int64_t pixel) {
        const size_t at = p.output_at(n, o, pixel);
        const double sum = p.sum(n, o, pixel);
        double want = sum + p.bias[static_cast<size_t>(o)] + p.residual[at];
        if (p.activation.kind == Kind::kClamp) want = std::clamp(want, -1.0, 30.0);
        if (p.activation.kind == Kind::kSwish) want = want / (1 + std::exp(-want));
        // 2^-16 of the largest of each block of inputs and of weights, some four times the others.
        const double large = odd && n == c.batch - 1 && pixel == 0 ? 1e6 * 0x1p-13 : 0;
        const double lost = 0x1p-11 * std::sqrt(static_cast<double>(c.in_channels)) +
                            0x1p-20 * std::fabs(sum) + large;
        ASSERT_NEAR(y[at], want, lost) << n << " " << o << " " << pixel;
      });
    }
}

TEST_F(HalvesConvolution, LeavesImagesOfFewPixels) {
  EXPECT_TRUE(halves_conv_fits(shape_of({16, 256, 256, 2, 2, 1, 1})));
  for (const auto& [height, width] : {std::array<int64_t, 2>{1, 1}, {1, 3}, {7, 1}})
    EXPECT_FALSE(halves_conv_fits(shape_of({64, 256, 256, height, width, 1, 1})));
}

TEST_F(HalvesConvolution, LeavesWeightsToFloats) {
  BlockedProblem p = problem(kCases[0]);
  for (const int64_t column : {3, 40}) {
    p.w[static_cast<size_t>(column * p.s.in_channels)] = 1e4f;
    EXPECT_EQ(halves_conv_packed(pack(p).get()), column == 3);
  }
}

TEST_F(HalvesConvolution, KeepsWhatIsNotFinite) {
  for (const float odd : {std::numeric_limits<float>::infinity(), std::nanf(""), 3e38f, 1e-40f}) {
    BlockedProblem p = problem(kCases[1]);
    p.x[p.input_at(1, 40, 17)] = odd;
    const std::vector<float> y = run(p, pack(p).get());
    for (int64_t o = 0; o < p.s.out_channels; ++o) {
      const auto want = static_cast<float>(p.sum(1, o, 17));
      const float got = y[p.output_at(1, o, 17)];
      if (!std::isfinite(want))
        ASSERT_FALSE(std::isfinite(got)) << odd;
      else if (std::fabs(want) > 1e30f)
        ASSERT_NEAR(got / want, 1, 0.03f) << odd;
      else
        ASSERT_NEAR(got, want, 0.01f) << odd;
    }
    p.w[300] = odd;
    EXPECT_EQ(halves_conv_packed(pack(p).get()), odd == 1e-40f) << odd;
  }
}

}  // namespace
}  // namespace tombolo
