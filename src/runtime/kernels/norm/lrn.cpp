#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/norm/lrn.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "ops/tombolo/block.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/norm/lrn.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_LRN_ONCE  // included once for each target
#define TOMBOLO_LRN_ONCE
namespace tombolo {
constexpr int64_t kSquares = 4096;  ///< stay in the first cache
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::CappedTag<float, 16>;
using V = hn::Vec<F>;

#if HWY_ARCH_X86  // others' first guesses have fewer digits
/// base^(-3/4), within three units in the last place: t is about base^(-1/4), and what 1 - base t^4
/// is off by is made up for by the series of (1 - e)^(-3/4).
HWY_INLINE V three_quarters_down(V base) {
  const F d;
  const V root = hn::ApproximateReciprocalSqrt(base);
  const V t = hn::Mul(root, hn::ApproximateReciprocalSqrt(root)), square = hn::Mul(t, t);
  const V e = hn::NegMulAdd(hn::Mul(base, square), square, hn::Set(d, 1.0f));
  const V cube = hn::Mul(square, t);
  const V series = hn::MulAdd(hn::Set(d, 77.0f / 128), e, hn::Set(d, 21.0f / 32));
  return hn::MulAdd(hn::Mul(cube, e), hn::MulAdd(series, e, hn::Set(d, 0.75f)), cube);
}
#endif

/// x * base^-beta.
HWY_INLINE V scaled_down(V x, V base, float beta) {
  const F d;
  if (beta == 0.75f) {
#if HWY_ARCH_X86
    const auto usual = hn::And(hn::Ge(base, hn::Set(d, std::numeric_limits<float>::min())),
                               hn::Le(base, hn::Set(d, std::numeric_limits<float>::max())));
    if (hn::AllTrue(d, usual)) return hn::Mul(x, three_quarters_down(base));
#endif
    const V root = hn::Sqrt(base);
    return hn::Div(x, hn::Mul(root, hn::Sqrt(root)));
  }
  if (beta == 0.5f) return hn::Div(x, hn::Sqrt(base));
  if (beta == 1.0f) return hn::Div(x, base);
  return hn::Mul(x, v_exp(d, hn::Mul(hn::Set(d, -beta), v_log(d, base))));
}

void lrn_planes(const Lrn& lrn, const float* HWY_RESTRICT x, float* HWY_RESTRICT y,
                int64_t channels, int64_t plane, int64_t pixels) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V factor = hn::Set(d, lrn.factor), bias = hn::Set(d, lrn.bias);
  for (int64_t i = 0; i < pixels; i += lanes) {
    const int64_t left = pixels - i;
    for (int64_t c = 0; c < channels; ++c) {
      V sum = hn::Zero(d);
      const int64_t high = std::min(channels - 1, c + lrn.after);
      for (int64_t k = std::max<int64_t>(0, c - lrn.before); k <= high; ++k) {
        const V v = load_n(d, x + k * plane + i, left);
        sum = hn::MulAdd(v, v, sum);
      }
      const V v = load_n(d, x + c * plane + i, left);
      store_n(scaled_down(v, hn::MulAdd(factor, sum, bias), lrn.beta), d, y + c * plane + i, left);
    }
  }
}

/// `room` has for each of `together` pixels a row of the squares of its channels, with zeros around
/// them.
void lrn_in_blocks(const Lrn& lrn, const float* x, float* y, int64_t channels, int64_t plane,
                   int64_t pixels, float* HWY_RESTRICT room, int64_t row, int64_t together) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V factor = hn::Set(d, lrn.factor), bias = hn::Set(d, lrn.bias);
  const int64_t window = lrn.before + lrn.after;
  for (int64_t i = 0; i < together; ++i) {
    std::fill_n(room + i * row, lrn.before, 0.0f);
    std::fill(room + i * row + lrn.before + channels, room + (i + 1) * row, 0.0f);
  }
  for (int64_t from = 0; from < pixels; from += together) {
    const int64_t count = std::min(together, pixels - from);
    for (int64_t c = 0; c < channels; c += lanes) {
      const float* at = x + (c / kChannelBlock * plane + from) * kChannelBlock + c % kChannelBlock;
      float* squares = room + lrn.before + c;
      for (int64_t i = 0; i < count; ++i, at += kChannelBlock, squares += row) {
        const V v = hn::LoadU(d, at);
        store_n(hn::Mul(v, v), d, squares, channels - c);
      }
    }
    for (int64_t c = 0; c < channels; c += lanes) {
      const int64_t at = (c / kChannelBlock * plane + from) * kChannelBlock + c % kChannelBlock;
      const float* squares = room + c;
      for (int64_t i = 0; i < count; ++i, squares += row) {
        V sum = hn::LoadU(d, squares);
        for (int64_t k = 1; k <= window; ++k) sum = hn::Add(sum, hn::LoadU(d, squares + k));
        const V v = hn::LoadU(d, x + at + i * kChannelBlock);
        hn::StoreU(scaled_down(v, hn::MulAdd(factor, sum, bias), lrn.beta), d,
                   y + at + i * kChannelBlock);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void lrn_run(const Lrn& lrn, const float* x, float* y, int64_t channels, int64_t plane,
             int64_t pixels) {
  TOMBOLO_TARGET(void(const Lrn&, const float*, float*, int64_t, int64_t, int64_t), lrn_planes)
  (lrn, x, y, channels, plane, pixels);
}
void lrn_blocks(const Lrn& lrn, const float* x, float* y, int64_t channels, int64_t plane,
                int64_t pixels) {
  // A vector is read at every channel.
  const int64_t row = lrn.before + round_up(channels, kChannelBlock) + lrn.after;
  const int64_t together = std::min(pixels, std::clamp<int64_t>(kSquares / row, 1, 16));
  float* room = thread_floats(0, static_cast<size_t>(together * row));
  TOMBOLO_TARGET(
      void(const Lrn&, const float*, float*, int64_t, int64_t, int64_t, float*, int64_t, int64_t),
      lrn_in_blocks)
  (lrn, x, y, channels, plane, pixels, room, row, together);
}

}  // namespace tombolo
#endif
