// Squares of as many vectors as they have lanes; included once for each target.
#if defined(TOMBOLO_SQUARE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_SQUARE_INL_H
#undef TOMBOLO_SQUARE_INL_H
#else
#define TOMBOLO_SQUARE_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using SquareTag = hn::CappedTag<double, 8>;
using SquareRow = hn::Vec<SquareTag>;
constexpr int kSquare = HWY_LANES(double) < 8 ? HWY_LANES(double) : 8;

/// Lane j of vector i becomes lane i of vector j.
HWY_INLINE void transpose_square(SquareRow* v) {
  const SquareTag d;
#pragma GCC unroll 4
  for (int i = 0; i < kSquare; i += 2) {
    const SquareRow a = v[i], b = v[i + 1];
    v[i] = hn::InterleaveLower(d, a, b);
    v[i + 1] = hn::InterleaveUpper(d, a, b);
  }
#if HWY_TARGET <= HWY_AVX2
  if constexpr (kSquare == 8) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      SquareRow &a = v[i / 2 * 4 + i % 2], &b = v[i / 2 * 4 + i % 2 + 2];
      const SquareRow even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      b = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
      a = even;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kSquare / 2; ++i) {
    SquareRow &a = v[i], &b = v[i + kSquare / 2];
    const SquareRow lower = hn::ConcatLowerLower(d, b, a);
    b = hn::ConcatUpperUpper(d, b, a);
    a = lower;
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
