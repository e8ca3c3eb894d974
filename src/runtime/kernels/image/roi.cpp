#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/image/roi.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/image/roi.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

template <bool kMaximum>
HWY_INLINE V fold(V weight, V value, V sum) {
  if constexpr (kMaximum)
    return max_of(hn::Mul(weight, value), sum);
  else
    return hn::MulAdd(weight, value, sum);
}

/// kV vectors of channels, or `left` of one.
template <bool kMaximum, int kV>
HWY_INLINE void blend_channels(const RoiBlend& b, const float* from, float* out, int64_t left) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto load = [&](const float* p, int v) HWY_ATTR {
    return kV == 1 ? load_n(f, p, left) : hn::LoadU(f, p + v * lanes);
  };
  V sums[kV];
#pragma GCC unroll 4
  for (int v = 0; v < kV; ++v)
    sums[v] = b.more     ? load(out, v)
              : kMaximum ? hn::Set(f, -std::numeric_limits<float>::infinity())
                         : hn::Zero(f);
  for (int64_t t = 0; t < b.taps; ++t) {
    const float* const row = from + b.at[t] * b.channels;
    const V weight = hn::Set(f, b.weights[t]);
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      sums[v] = fold<kMaximum>(weight, load(row, v), sums[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kV; ++v) {
    if constexpr (kV == 1)
      store_n(sums[v], f, out, left);
    else
      hn::StoreU(sums[v], f, out + v * lanes);
  }
}

template <bool kMaximum>
void blend_all(const RoiBlend& b) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  for (int64_t i = 0; i < b.count; ++i) {
    const float* const from = b.from + b.bases[i] * b.channels;
    float* const out = b.out + i * b.channels;
    int64_t c = 0;
    for (; c + 4 * lanes <= b.channels; c += 4 * lanes)
      blend_channels<kMaximum, 4>(b, from + c, out + c, 0);
    for (; c < b.channels; c += lanes)
      blend_channels<kMaximum, 1>(b, from + c, out + c, b.channels - c);
  }
}

template <bool kMaximum>
void plane_of(const RoiPlane& p) {
  const F f;
  const hn::RebindToSigned<F> i32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V start = kMaximum ? hn::Set(f, -std::numeric_limits<float>::infinity()) : hn::Zero(f);
  constexpr int kKinds = kMaximum ? 2 : 1;
  for (int kind = 0; kind < kKinds; ++kind)
    for (int64_t row = 0; row < p.cell_rows; ++row) {
      float* const line = p.lines[kind] + kRoiVector + row * p.step;
      for (int64_t i = 0; i < p.span; i += lanes) {
        V sum = start;
        for (int64_t j = p.first[row]; j < p.first[row + 1]; ++j)
          sum = fold<kMaximum>(hn::Set(f, p.weights[kind][j]),
                               load_n(f, p.x + p.rows[j] + i, p.span - i), sum);
        hn::StoreU(sum, f, line + i);
      }
    }
  for (int64_t i = 0; i < p.cells; i += lanes) {
    V sum = start;
    for (int kind = 0; kind < kKinds; ++kind)
      for (int64_t t = 0; t < p.taps; ++t) {
        const int64_t at = t * ((p.cells + kRoiVector - 1) / kRoiVector * kRoiVector) + i;
        sum = fold<kMaximum>(hn::LoadU(f, p.shares[kind] + at),
                             hn::GatherIndex(f, p.lines[kind], hn::LoadU(i32, p.places + at)), sum);
      }
    hn::StoreU(sum, f, p.out + i);
  }
}

void plane_any(const RoiPlane& p) { p.maximum ? plane_of<true>(p) : plane_of<false>(p); }

void blend_any(const RoiBlend& b) { b.maximum ? blend_all<true>(b) : blend_all<false>(b); }

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void roi_blend(const RoiBlend& task) {
  TOMBOLO_TARGET(void(const RoiBlend&), blend_any).get()(task);
}
void roi_plane(const RoiPlane& task) {
  TOMBOLO_TARGET(void(const RoiPlane&), plane_any).get()(task);
}

}  // namespace tombolo
#endif
