// Convolutions in blocks by AMX, as products of digits: what vectors give, nearer to the exact
// sums.

#include "runtime/kernels/conv/digits_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "blocked_problem.h"
#include "rooms.h"
#include "runtime/kernels/conv/digits_winograd.h"
#include "runtime/kernels/isa.h"

namespace tombolo {
namespace {

using Case = BlockedCase;

class DigitsConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_amx_int8()) GTEST_SKIP() << "no AMX on this machine";
  }
  void TearDown() override { set_thread_count(0); }

  std::vector<float> normal(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal_(engine_);
    return values;
  }

  std::mt19937 engine_{3};
  std::normal_distribution<float> normal_;
};

struct Problem : BlockedProblem {
  std::vector<float> by_digits() const {
    const DigitsConv plan = plan_digits_conv(s);
    const Bytes packed = bytes(plan.weight_bytes), scratch = bytes(plan.scratch_bytes);
    pack_digits_conv(plan, w.data(), packed.get());
    EXPECT_TRUE(digits_conv_packed(packed.get()));
    std::vector<float> y(static_cast<size_t>(s.batch * out_floats()));
    run_digits_conv(plan, x.data(), packed.get(), y.data(), epilogue(), scratch.get());
    return y;
  }
  std::vector<float> by_vectors() const {
    const BlockConvPlan plan = plan_block_conv(s, false, false);
    const Bytes packed = bytes((plan.weight_floats + 64) * 4);
    const Bytes scratch = bytes((plan.scratch_floats + 64) * 4);
    pack_block_conv(plan, w.data(), reinterpret_cast<float*>(packed.get()));
    std::vector<float> y(static_cast<size_t>(s.batch * out_floats()));
    run_block_conv(plan, x.data(), reinterpret_cast<float*>(packed.get()), y.data(), epilogue(),
                   reinterpret_cast<float*>(scratch.get()));
    return y;
  }
  std::vector<float> by_winograd(bool digits) const {
    BlockConvPlan plan = plan_block_conv(s, false);
    EXPECT_EQ(plan.algorithm, BlockConvPlan::Algorithm::kWinograd);
    plan.products = digits ? BlockConvPlan::Products::kDigits : BlockConvPlan::Products::kFloats;
    if (digits) {
      EXPECT_TRUE(digits_winograd_fits(plan));
    }
    const Bytes packed =
        bytes(digits ? digits_winograd_bytes(plan) : (plan.weight_floats + 64) * 4);
    const Bytes scratch = bytes((plan.scratch_floats + 64) * 4);
    if (digits)
      EXPECT_TRUE(pack_digits_winograd(plan, w.data(), packed.get()));
    else
      pack_block_winograd(plan, w.data(), reinterpret_cast<float*>(packed.get()));
    std::vector<float> y(static_cast<size_t>(s.batch * out_floats()));
    run_block_conv(plan, x.data(), reinterpret_cast<float*>(packed.get()), y.data(), epilogue(),
                   reinterpret_cast<float*>(scratch.get()));
    return y;
  }
  /// Root of the mean square of what `y` is off the windows' products, in double.
  double error(const std::vector<float>& y) const {
    double off = 0;
    each_result([&](int64_t n, int64_t o, int64_t pixel) {
      const double from = bias.empty() ? 0 : double{bias[static_cast<size_t>(o)]};
      off += std::pow(y[output_at(n, o, pixel)] - from - sum(n, o, pixel), 2);
    });
    return std::sqrt(off / static_cast<double>(s.batch * s.out_channels * s.out_plane()));
  }
};

constexpr Case kCases[] = {
    {1, 128, 96, 7, 8, 1, 1},
    {2, 100, 100, 9, 9, 1, 1},
    {1, 130, 97, 16, 17, 1, 1, 2},
    {2, 128, 128, 20, 30, 1, 1},
    {1, 64, 96, 14, 14, 3, 3, 1, 1, 1},
    {2, 60, 100, 13, 11, 3, 3, 2, 1, 1},
    {1, 64, 96, 9, 33, 1, 7, 1, 1, 3},
    {1, 64, 96, 15, 15, 3, 3, 1, 2, 2},
    {1, 50, 96, 12, 12, 5, 5, 1, 1, 2},
    {1, 128, 96, 10, 10, 1, 1, 1, 1, 1},
    {1, 64, 112, 30, 31, 2, 2, 3},
    {1, 192, 96, 12, 12, 3, 1, 2, 1, 1},
    {2, 48, 96, 13, 14, 5, 5, 1, 1, 2, 2},
    {1, 128, 112, 9, 9, 1, 1, 1, 1, 0, 3},
    // Small images, and as many as threads share out.
    {1, 112, 256, 8, 9, 1, 1, 1, 1, 0, 4},
    {1, 64, 64, 7, 8, 3, 3, 1, 1, 1, 5},
    {12, 128, 96, 16, 17, 1, 1},
    // In parts of the inputs.
    {1, 960, 160, 7, 7, 1, 1},
    {2, 604, 100, 7, 8, 1, 1},
    {1, 576, 128, 13, 14, 1, 1, 2, 1, 0, 2},
    {1, 1280, 272, 14, 14, 1, 1},
};

TEST_F(DigitsConvolution, GivesWhatVectorsGive) {
  using Kind = Activation::Kind;
  const Activation activations[] = {
      {}, {Kind::kClamp, 0, 2}, {Kind::kSwish, 1}, {Kind::kHardSwish}, {Kind::kLeakyRelu, 0.1f}};
  size_t turn = 0;
  for (const Case& c : kCases)
    for (const int threads : {1, 2, 3}) {
      set_thread_count(threads);
      Problem p{{.s = shape_of(c)}};
      p.x = normal(c.batch * p.in_floats());
      p.w = normal(c.groups * c.out_channels * c.in_channels * p.s.taps());
      p.spoil_lanes();
      if (turn % 2 == 0) p.bias = normal(c.groups * blocks_of(c.out_channels) * kBlock);
      if (turn % 3 == 0) p.residual = normal(c.batch * p.out_floats());
      p.activation = activations[turn++ % std::size(activations)];
      spoil_rooms();
      const std::vector<float> got = p.by_digits(), want = p.by_vectors();
      const float size = std::sqrt(static_cast<float>(p.s.depth()));
      SCOPED_TRACE("case " + std::to_string(&c - kCases));
      p.each([&](size_t at) {
        ASSERT_NEAR(got[at], want[at], 4e-6f * (size + std::fabs(want[at]))) << turn << " " << at;
      });
    }
}

// An infinity, a NaN and numbers far larger than the others: in the window of some results, whether
// a pixel or an image goes by vectors for them.
TEST_F(DigitsConvolution, LeavesOddImagesToVectors) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Case& c : kCases)
    for (const float odd : {kInf, std::nanf(""), 1e20f, 1e-42f}) {
      Problem p{{.s = shape_of(c)}};
      p.x = normal(c.batch * p.in_floats());
      p.w = normal(c.groups * c.out_channels * c.in_channels * p.s.taps());
      p.bias = normal(c.groups * blocks_of(c.out_channels) * kBlock);
      p.activation = {Activation::Kind::kSwish, 1};
      const int64_t last = (c.groups * blocks_of(c.in_channels) - 1) * p.s.in_plane();
      p.x[static_cast<size_t>(p.s.in_plane() / 2 * kBlock + 3)] = odd;
      p.x[static_cast<size_t>((last + p.s.in_plane() / 3) * kBlock)] = odd;
      set_thread_count(1);  // nobody else has rooms
      spoil_rooms();
      const std::vector<float> got = p.by_digits(), want = p.by_vectors();
      const float size = std::sqrt(static_cast<float>(p.s.depth()));
      SCOPED_TRACE("case " + std::to_string(&c - kCases));
      p.each([&](size_t at) {
        if (std::isnan(want[at])) {
          ASSERT_TRUE(std::isnan(got[at])) << odd << " " << at;
        } else if (std::isinf(want[at])) {
          ASSERT_EQ(got[at], want[at]) << odd << " " << at;
        } else {
          ASSERT_NEAR(got[at], want[at], 4e-6f * (size + std::fabs(want[at]))) << odd << " " << at;
        }
      });
    }
}

TEST_F(DigitsConvolution, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const Case& c : kCases) {
    Problem p{{.s = shape_of(c)}};
    p.x = normal(c.batch * p.in_floats());
    p.w = normal(c.groups * c.out_channels * c.in_channels * p.s.taps());
    set_thread_count(1);
    const std::vector<float> one = p.by_digits();
    set_thread_count(3);
    const std::vector<float> three = p.by_digits();
    p.each([&](size_t at) { ASSERT_EQ(three[at], one[at]) << at; });
  }
}

constexpr Case kWinogradCases[] = {
    {1, 96, 96, 30, 31, 3, 3, 1, 1, 1},
    {3, 100, 130, 17, 18, 3, 3, 1, 1, 1},
    {1, 128, 100, 28, 29, 3, 3, 1, 2, 2},
    {1, 130, 96, 40, 90, 3, 3},
};

TEST_F(DigitsConvolution, MakesWinogradNoLessExact) {
  const Case& c = kWinogradCases[0];
  Problem p{{.s = shape_of(c)}};
  p.x = normal(c.batch * p.in_floats());
  p.w = normal(c.out_channels * c.in_channels * 9);
  p.bias = normal(c.groups * blocks_of(c.out_channels) * kBlock);
  const std::vector<float> digits = p.by_winograd(true);
  EXPECT_LT(p.error(digits), 1.02 * p.error(p.by_winograd(false)));
  set_thread_count(3);
  const std::vector<float> three = p.by_winograd(true);
  p.each([&](size_t at) { ASSERT_EQ(three[at], digits[at]) << at; });
}

TEST_F(DigitsConvolution, LeavesOddTilesOfWinogradToVectors) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Case& c : kWinogradCases)
    for (const float odd : {0.0f, kInf, std::nanf(""), 1e20f}) {
      Problem p{{.s = shape_of(c)}};
      p.x = normal(c.batch * p.in_floats());
      p.w = normal(c.out_channels * c.in_channels * 9);
      p.residual = normal(c.batch * p.out_floats());
      p.activation = {Activation::Kind::kHardSwish};
      if (odd != 0) p.x[static_cast<size_t>(p.s.in_plane() / 2 * kBlock + 3)] = odd;
      const std::vector<float> got = p.by_winograd(true), want = p.by_winograd(false);
      const float size = std::sqrt(static_cast<float>(p.s.depth()));
      p.each([&](size_t at) {
        if (!std::isfinite(want[at])) {
          ASSERT_FALSE(std::isfinite(got[at])) << odd << " " << at;
        } else if (std::fabs(want[at]) < 1e6f) {
          ASSERT_NEAR(got[at], want[at], 2e-5f * (size + std::fabs(want[at]))) << odd << " " << at;
        }
      });
    }
}

TEST_F(DigitsConvolution, DoesNotTakeWeightsOfAllSizes) {
  Problem p{{.s = shape_of(kCases[4])}};
  p.w = normal(p.s.out_channels * p.s.in_channels * p.s.taps());
  p.w[1000] = 1e10f;
  const DigitsConv plan = plan_digits_conv(p.s);
  const Bytes packed = bytes(plan.weight_bytes);
  pack_digits_conv(plan, p.w.data(), packed.get());
  EXPECT_FALSE(digits_conv_packed(packed.get()));
}

}  // namespace
}  // namespace tombolo
