// Winograd's tiles of 2 x 2 by products of bf16: exact on whole numbers, near to sums in double on
// others.

#include "runtime/kernels/conv/bf16_winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "blocked_problem.h"
#include "rooms.h"
#include "runtime/kernels/isa.h"

namespace tombolo {
namespace {

constexpr BlockedCase kCases[] = {
    {1, 64, 64, 14, 14, 3, 3, 1, 1, 1},  {2, 40, 33, 9, 7, 3, 3, 1, 1, 1},
    {1, 16, 130, 5, 30, 3, 3, 1, 1, 0},  {3, 17, 16, 4, 4, 3, 3, 1, 1, 2},
    {1, 20, 48, 3, 3, 3, 3, 1, 1, 0},    {1, 33, 20, 1, 2, 3, 3, 1, 1, 1},
    {1, 256, 100, 7, 7, 3, 3, 1, 1, 1},  {2, 32, 32, 60, 61, 3, 3, 1, 1, 1},
    {1, 160, 160, 40, 40, 3, 3, 1, 1, 1}};

class Bf16WinogradConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    limit_extras(Extras::kDot);  // its tiles are not AMX's
    if (!has_bf16_dot()) GTEST_SKIP() << "no bf16 on this machine";
  }
  void TearDown() override {
    limit_extras(Extras::kTiles);
    set_thread_count(0);
  }

  /// Whole numbers up to `most`, or any.
  std::vector<float> numbers(int64_t count, int most) {
    std::vector<float> all(static_cast<size_t>(count));
    for (float& x : all)
      x = most == 0 ? normal_(engine_)
                    : static_cast<float>(static_cast<int>(engine_() % (2u * most + 1)) - most);
    return all;
  }
  BlockedProblem problem(const BlockedCase& c, int most) {
    BlockedProblem p{.s = shape_of(c)};
    p.x = numbers(c.batch * p.in_floats(), most);
    p.w = numbers(c.out_channels * c.in_channels * 9, most);
    p.spoil_lanes();
    return p;
  }
  /// What is added lies where the results go.
  static std::vector<float> run(const BlockedProblem& p) {
    const Bf16Winograd plan = plan_bf16_winograd(p.s);
    const Bytes packed = bytes(plan.weight_bytes), scratch = bytes(plan.scratch_bytes);
    pack_bf16_winograd(plan, p.w.data(), packed.get());
    std::vector<float> y = p.residual;
    y.resize(static_cast<size_t>(p.s.batch * p.out_floats()));
    ConvEpilogue e = p.epilogue();
    if (e.residual != nullptr) e.residual = y.data();
    spoil_rooms();
    run_bf16_winograd(plan, p.x.data(), packed.get(), y.data(), e, scratch.get());
    return y;
  }

  std::mt19937 engine_{7};
  std::normal_distribution<float> normal_;
};

TEST_F(Bf16WinogradConvolution, IsExactOnWholeNumbers) {
  using Kind = Activation::Kind;
  const Activation activations[] = {{}, {Kind::kClamp, 0, 90}, {Kind::kHardSwish}};
  size_t turn = 0;
  for (const BlockedCase& c : kCases)
    for (const int threads : {1, 2, 3}) {
      set_thread_count(threads);
      BlockedProblem p = problem(c, 7);
      if (turn % 2 == 0) p.bias = numbers(blocks_of(c.out_channels) * kBlock, 20);
      if (turn % 4 < 2) p.residual = numbers(c.batch * p.out_floats(), 20);
      p.activation = activations[turn++ % std::size(activations)];
      const std::vector<float> y = run(p);
      p.each_result([&](int64_t n, int64_t o, int64_t pixel) {
        const size_t at = p.output_at(n, o, pixel);
        double want = p.sum(n, o, pixel);
        if (!p.bias.empty()) want += p.bias[static_cast<size_t>(o)];
        if (!p.residual.empty()) want += p.residual[at];
        if (p.activation.kind == Kind::kClamp) want = std::clamp(want, 0.0, 90.0);
        if (p.activation.kind == Kind::kHardSwish) {
          want *= std::clamp(want / 6 + 0.5, 0.0, 1.0);
          ASSERT_NEAR(y[at], want, 1e-6 * std::fabs(want)) << n << " " << o << " " << pixel;
          return;
        }
        ASSERT_EQ(y[at], want) << n << " " << o << " " << pixel << " of " << c.in_channels;
      });
    }
}

// Plain sums of bf16 are off by 0.0023 of their root mean square.
TEST_F(Bf16WinogradConvolution, LosesLittleMoreThanPlainSums) {
  for (const BlockedCase& c : {kCases[0], kCases[6]}) {
    const BlockedProblem p = problem(c, 0);
    const std::vector<float> y = run(p);
    double off = 0, size = 0;
    p.each_result([&](int64_t n, int64_t o, int64_t pixel) {
      const double want = p.sum(n, o, pixel);
      off += std::pow(y[p.output_at(n, o, pixel)] - want, 2);
      size += want * want;
    });
    EXPECT_LT(std::sqrt(off / size), 0.0045);
    EXPECT_GT(std::sqrt(off / size), 0.001) << "nothing was rounded";
  }
}

}  // namespace
}  // namespace tombolo
