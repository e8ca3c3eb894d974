#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/math/distance.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math/distance.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Differences first: |a|^2 + |b|^2 - 2 a b would leave little of the distance of neighbours.
template <int kR, int kV>
void distance_tile(const DistanceTile& t, const float* a, int64_t column, float* y) {
  const hn::ScalableTag<float> f;
  using V = hn::Vec<decltype(f)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  V sum[kR * kV];
#pragma GCC unroll 16
  for (V& s : sum) s = hn::Zero(f);
  const float* b = t.panel + column;
  for (int64_t k = 0; k < t.width; ++k, b += t.panel_width) {
    V of_b[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) of_b[v] = hn::LoadU(f, b + v * lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r) {
      const V of_a = hn::Set(f, a[r * t.width + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) {
        const V apart = hn::Sub(of_a, of_b[v]);
        sum[r * kV + v] = hn::MulAdd(apart, apart, sum[r * kV + v]);
      }
    }
  }
  for (int r = 0; r < kR; ++r)
    for (int v = 0; v < kV; ++v) {
      const V s = sum[r * kV + v];
      const int64_t at = column + v * lanes;
      if (at < t.cols) store_n(t.root ? hn::Sqrt(s) : s, f, y + r * t.ldy + at, t.cols - at);
    }
}

void distances_any(const DistanceTile& t, int64_t rows) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  for (int64_t column = 0; column < t.cols; column += 2 * lanes) {
    const bool two = column + lanes < t.cols;
    for (int64_t r = 0; r < rows;) {
      const float* a = t.a + r * t.width;
      float* y = t.y + r * t.ldy;
      if (rows - r >= 4) {
        (two ? distance_tile<4, 2> : distance_tile<4, 1>)(t, a, column, y);
        r += 4;
      } else {
        (two ? distance_tile<1, 2> : distance_tile<1, 1>)(t, a, column, y);
        ++r;
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void distance_rows(const DistanceTile& tile, int64_t rows) {
  using Fn = void(const DistanceTile&, int64_t);
  TOMBOLO_TARGET(Fn, distances_any).get()(tile, rows);
}

}  // namespace tombolo
#endif
