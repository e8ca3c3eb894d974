// Vectors of the Fourier transforms; included once for each target.
#if defined(TOMBOLO_FFT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_FFT_INL_H
#undef TOMBOLO_FFT_INL_H
#else
#define TOMBOLO_FFT_INL_H
#endif

#include <hwy/highway.h>

#include "runtime/kernels/math/fft_lines.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FftTag = hn::CappedTag<double, kFftSignals>;
using FftWide = hn::Vec<FftTag>;
constexpr int kFftLanes = HWY_LANES(double) < kFftSignals ? HWY_LANES(double) : kFftSignals;

/// Lane j of vector i becomes lane i of vector j.
HWY_INLINE void transpose_square(FftWide* v) {
  const FftTag d;
#pragma GCC unroll 4
  for (int i = 0; i < kFftLanes; i += 2) {
    const FftWide a = v[i], b = v[i + 1];
    v[i] = hn::InterleaveLower(d, a, b);
    v[i + 1] = hn::InterleaveUpper(d, a, b);
  }
#if HWY_TARGET <= HWY_AVX2
  if constexpr (kFftLanes == 8) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      FftWide &a = v[i / 2 * 4 + i % 2], &b = v[i / 2 * 4 + i % 2 + 2];
      const FftWide even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      b = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
      a = even;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kFftLanes / 2; ++i) {
    FftWide &a = v[i], &b = v[i + kFftLanes / 2];
    const FftWide lower = hn::ConcatLowerLower(d, b, a);
    b = hn::ConcatUpperUpper(d, b, a);
    a = lower;
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
