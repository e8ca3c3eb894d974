// Convolutions of one pixel by pairs of bytes, against sums in double.

#include "runtime/kernels/conv/halves_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "each_isa.h"
#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/elementwise/convert.h"

namespace tombolo {
namespace {

struct Case {
  int64_t batch, in, out, height, width, stride_y, stride_x;
};

class HalvesConvolution : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_count(0); }

  static ConvGeometry shape_of(const Case& c) {
    ConvGeometry s;
    s.batch = c.batch;
    s.in_channels = c.in;
    s.out_channels = c.out;
    s.in[1] = c.height;
    s.in[2] = c.width;
    s.stride[1] = c.stride_y;
    s.stride[2] = c.stride_x;
    for (const int axis : {1, 2}) s.out[axis] = (s.in[axis] - 1) / s.stride[axis] + 1;
    return s;
  }
  std::vector<float> numbers(int64_t n) {
    std::vector<float> all(static_cast<size_t>(n));
    for (float& x : all) x = normal_(engine_);
    return all;
  }

  /// Element [n, c, pixel] of blocked channels.
  static int64_t at(int64_t channels, int64_t plane, int64_t n, int64_t c, int64_t pixel) {
    return ((n * blocks_of(channels) + c / kBlock) * plane + pixel) * kBlock + c % kBlock;
  }
  struct Sum {
    double value, largest;  ///< of its inputs
  };
  static Sum sum_at(const ConvGeometry& s, const std::vector<float>& x, const std::vector<float>& w,
                    int64_t n, int64_t o, int64_t pixel) {
    const int64_t row = pixel / s.out[2] * s.stride[1], column = pixel % s.out[2] * s.stride[2];
    Sum sum{};
    for (int64_t i = 0; i < s.in_channels; ++i) {
      const double input =
          x[static_cast<size_t>(at(s.in_channels, s.in_plane(), n, i, row * s.in[2] + column))];
      sum.value += w[static_cast<size_t>(o * s.in_channels + i)] * input;
      sum.largest = std::max(sum.largest, std::fabs(input));
    }
    return sum;
  }

  std::mt19937 engine_{11};
  std::normal_distribution<float> normal_;
};

constexpr Case kCases[] = {{1, 64, 256, 8, 7, 1, 1},    {2, 130, 144, 9, 6, 1, 1},
                           {1, 100, 170, 31, 13, 2, 2}, {3, 384, 200, 5, 10, 1, 2},
                           {1, 70, 258, 60, 60, 1, 1},  {1, 1024, 256, 7, 7, 1, 1}};

TEST_F(HalvesConvolution, Agrees) {
  const Streams one(true);
  if (!halves_conv_fits(shape_of(kCases[0]))) GTEST_SKIP() << "no VNNI on this machine";
  for (const Case& c : kCases)
    for (const bool odd : {false, true})
      for (const Activation& act :
           {Activation{}, Activation{Activation::Kind::kClamp, -1.0f, 30.0f},
            Activation{Activation::Kind::kSwish, 1.0f}}) {
        const ConvGeometry s = shape_of(c);
        ASSERT_TRUE(halves_conv_fits(s));
        std::vector<float> x = numbers(c.batch * blocks_of(c.in) * s.in_plane() * kBlock);
        std::vector<float> w = numbers(c.out * c.in);
        // So is one panel of eight.
        if (odd && c.out >= 256) w[static_cast<size_t>(37 * c.in + 5)] = 1e4f;
        std::vector<uint16_t> halves(w.size());
        f32_to_f16(w.data(), halves.data(), static_cast<int64_t>(w.size()));
        f16_to_f32(halves.data(), w.data(), static_cast<int64_t>(w.size()));
        // What fills up the last block counts for nothing, in the image as in the weights.
        for (int64_t i = c.in; i < blocks_of(c.in) * kBlock; ++i)
          x[static_cast<size_t>(at(c.in, s.in_plane(), 0, i, 0))] =
              std::numeric_limits<float>::quiet_NaN();
        // A number far above the others is for floats, and so are its neighbours then.
        if (odd) x[static_cast<size_t>(at(c.in, s.in_plane(), c.batch - 1, 3, 0))] = 1e6f;
        const HalvesConv plan = plan_halves_conv(s);
        std::vector<std::byte> packed(plan.weight_bytes);
        pack_halves_conv(plan, w.data(), packed.data());
        ASSERT_TRUE(halves_conv_packed(packed.data()));
        const int64_t filled = blocks_of(c.out) * kBlock;
        std::vector<float> bias = numbers(filled);
        const std::vector<float> residual = numbers(c.batch * filled * s.out_plane());
        std::vector<float> first;
        for (const int threads : {1, 2, 3}) {
          set_thread_count(threads);
          std::vector<float> y = residual;
          run_halves_conv(plan, x.data(), packed.data(), y.data(),
                          {.bias = bias.data(), .residual = y.data(), .activation = act});
          if (threads == 1) first = y;
          // But for what fills up blocks.
          for (int64_t n = 0; n < c.batch; ++n)
            for (int64_t o = 0; o < c.out; ++o)
              for (int64_t p = 0; p < s.out_plane(); ++p) {
                const auto i = static_cast<size_t>(at(c.out, s.out_plane(), n, o, p));
                ASSERT_EQ(y[i], first[i]) << threads << " threads";
              }
        }
        for (int64_t n = 0; n < c.batch; ++n)
          for (int64_t o = 0; o < c.out; ++o)
            for (int64_t p = 0; p < s.out_plane(); ++p) {
              const auto i = static_cast<size_t>(at(c.out, s.out_plane(), n, o, p));
              const Sum sum = sum_at(s, x, w, n, o, p);
              double want = sum.value + bias[static_cast<size_t>(o)] + residual[i];
              if (act.kind == Activation::Kind::kClamp) want = std::clamp(want, -1.0, 30.0);
              if (act.kind == Activation::Kind::kSwish) want = want / (1 + std::exp(-want));
              // 2^-16 of the largest of each block of inputs, and of weights, which are some four
              // times the others.
              const double large = odd ? 0x1p-20 * std::fabs(sum.value) : 0;
              const double lost =
                  0x1p-13 * sum.largest + 0x1p-11 * std::sqrt(static_cast<double>(c.in)) + large;
              ASSERT_NEAR(first[i], want, lost) << n << " " << o << " " << p;
            }
      }
}

TEST_F(HalvesConvolution, LeavesWeightsToFloats) {
  const Streams one(true);
  const Case c = kCases[0];
  const ConvGeometry s = shape_of(c);
  if (!halves_conv_fits(s)) GTEST_SKIP() << "no VNNI on this machine";
  std::vector<float> w = numbers(c.out * c.in);
  const HalvesConv plan = plan_halves_conv(s);
  std::vector<std::byte> packed(plan.weight_bytes);
  for (const int64_t column : {3, 40}) {
    w[static_cast<size_t>(column * c.in)] = 1e4f;
    pack_halves_conv(plan, w.data(), packed.data());
    EXPECT_EQ(halves_conv_packed(packed.data()), column == 3);
  }
}

TEST_F(HalvesConvolution, KeepsWhatIsNotFinite) {
  const Streams one(true);
  const Case c = kCases[1];
  const ConvGeometry s = shape_of(c);
  if (!halves_conv_fits(s)) GTEST_SKIP() << "no VNNI on this machine";
  for (const float odd : {std::numeric_limits<float>::infinity(), std::nanf(""), 3e38f, 1e-40f}) {
    std::vector<float> x = numbers(c.batch * blocks_of(c.in) * s.in_plane() * kBlock);
    std::vector<float> w = numbers(c.out * c.in);
    x[static_cast<size_t>(at(c.in, s.in_plane(), 1, 40, 17))] = odd;
    const HalvesConv plan = plan_halves_conv(s);
    std::vector<std::byte> packed(plan.weight_bytes);
    pack_halves_conv(plan, w.data(), packed.data());
    std::vector<float> y(static_cast<size_t>(c.batch * blocks_of(c.out) * kBlock * s.out_plane()));
    run_halves_conv(plan, x.data(), packed.data(), y.data(), {});
    for (int64_t o = 0; o < c.out; ++o) {
      const auto want = static_cast<float>(sum_at(s, x, w, 1, o, 17).value);
      const float got = y[static_cast<size_t>(at(c.out, s.out_plane(), 1, o, 17))];
      if (!std::isfinite(want))
        ASSERT_FALSE(std::isfinite(got)) << odd;
      else if (std::fabs(want) > 1e30)
        ASSERT_NEAR(got / want, 1, 0.03f) << odd;
      else
        ASSERT_NEAR(got, want, 0.01) << odd;
    }
    w[300] = odd;
    pack_halves_conv(plan, w.data(), packed.data());
    EXPECT_EQ(halves_conv_packed(packed.data()), odd == 1e-40f) << odd;
  }
}

}  // namespace
}  // namespace tombolo
