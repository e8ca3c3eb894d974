// Squares of as many vectors as they have lanes; included once for each target.
#if defined(TOMBOLO_SQUARE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_SQUARE_INL_H
#undef TOMBOLO_SQUARE_INL_H
#else
#define TOMBOLO_SQUARE_INL_H
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using SquareTag = hn::CappedTag<double, 8>;
using SquareRow = hn::Vec<SquareTag>;
constexpr int kSquare = HWY_LANES(double) < 8 ? HWY_LANES(double) : 8;

/// Floats or doubles as they stand in memory, and as rows of doubles.
template <typename T>
using SquareNumbers = hn::Rebind<T, SquareTag>;
template <typename T>
HWY_INLINE SquareRow widened(hn::Vec<SquareNumbers<T>> v) {
  if constexpr (std::is_same_v<T, double>)
    return v;
  else
    return hn::PromoteTo(SquareTag(), v);
}
template <typename T>
HWY_INLINE hn::Vec<SquareNumbers<T>> narrowed(SquareRow v) {
  if constexpr (std::is_same_v<T, double>)
    return v;
  else
    return hn::DemoteTo(SquareNumbers<T>(), v);
}

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
