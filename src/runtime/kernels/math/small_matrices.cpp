#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/math/small_matrices.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math/small_matrices.h"
#include "runtime/kernels/math/square-inl.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// [element][matrix]; lanes without a matrix repeat the last one.
template <typename T>
void interleave_matrices(int64_t n, int64_t count, const T* x, double* a) {
  const int64_t size = n * n;
  for (int64_t e = 0; e < size; e += kSquare) {
    SquareRow v[kSquare];
#pragma GCC unroll 8
    for (int m = 0; m < kSquare; ++m)
      v[m] = widened<T>(
          load_n(SquareNumbers<T>(), x + std::min<int64_t>(m, count - 1) * size + e, size - e));
    transpose_square(v);
#pragma GCC unroll 8
    for (int t = 0; t < kSquare; ++t) hn::StoreU(v[t], SquareTag(), a + (e + t) * kSquare);
  }
}

using SmallIndex = hn::RebindToSigned<SquareTag>;

/// kR rows from `row` on, below the pivot's if `below`, lose what they take of it: top[j], in
/// columns [begin, n). A lane whose pivot was found in such a row has there what was in the pivot's
/// place, `moved`.
template <int kR, bool kInverse, bool kBelow>
void eliminate_rows(int64_t n, int64_t column, int64_t row, hn::Vec<SmallIndex> place,
                    SquareRow inverse, const double* top, const double* moved, double* a) {
  const SquareTag d;
  const SmallIndex di;
  using Mask = hn::Mask<SquareTag>;
  const int64_t width = n * kSquare;
  double* const at = a + row * width;
  Mask here[kR];
  SquareRow by[kR];
#pragma GCC unroll 4
  for (int r = 0; r < kR; ++r) {
    by[r] = hn::LoadU(d, at + r * width + column * kSquare);
    if constexpr (kBelow) {
      here[r] = hn::RebindMask(d, hn::Eq(place, hn::Set(di, (row + r) * width)));
      by[r] = hn::IfThenElse(here[r], hn::LoadU(d, moved + column * kSquare), by[r]);
    }
    if constexpr (!kInverse) by[r] = hn::Mul(by[r], inverse);
  }
  for (int64_t j = kInverse ? 0 : (column + 1) * kSquare; j < width; j += kSquare) {
    const SquareRow take = hn::LoadU(d, top + j);
    SquareRow before = take;
    if constexpr (kBelow) before = hn::LoadU(d, moved + j);
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r) {
      SquareRow v = hn::LoadU(d, at + r * width + j);
      if constexpr (kBelow) v = hn::IfThenElse(here[r], before, v);
      hn::StoreU(hn::NegMulAdd(by[r], take, v), d, at + r * width + j);
    }
  }
  if constexpr (kInverse) {
    // The inverse grows in the columns that are done.
    const SquareRow own = hn::Neg(inverse);
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r)
      hn::StoreU(hn::Mul(by[r], own), d, at + r * width + column * kSquare);
  }
}

template <bool kInverse, bool kBelow>
HWY_INLINE void eliminate(int64_t n, int64_t column, int64_t row, int64_t end,
                          hn::Vec<SmallIndex> place, SquareRow inverse, const double* top,
                          const double* moved, double* a) {
  constexpr int kRows = HWY_LANES(double) == 8 ? 4 : 2;
  for (; row + kRows <= end; row += kRows)
    eliminate_rows<kRows, kInverse, kBelow>(n, column, row, place, inverse, top, moved, a);
  for (; row < end; ++row)
    eliminate_rows<1, kInverse, kBelow>(n, column, row, place, inverse, top, moved, a);
}

/// Goes through the columns of a. Gives determinants, and for inverses 1: 0 where a column has no
/// pivot. `places` of inverses gets the rows that were exchanged, [column][matrix], as offsets.
template <bool kInverse>
SquareRow eliminate_small(int64_t n, double* a, double* moved, int64_t* places) {
  const SquareTag d;
  const SmallIndex di;
  const int64_t width = n * kSquare;
  SquareRow result = hn::Set(d, 1.0);
  auto regular = hn::Eq(result, result);
  for (int64_t column = 0; column < n; ++column) {
    double* const top = a + column * width;
    SquareRow most = hn::Abs(hn::LoadU(d, top + column * kSquare));
    const auto own = hn::Set(di, column * width);
    auto place = own;
    for (int64_t row = column + 1; row < n; ++row) {
      const SquareRow size = hn::Abs(hn::LoadU(d, a + row * width + column * kSquare));
      const auto more = hn::Gt(size, most);
      most = hn::IfThenElse(more, size, most);
      place = hn::IfThenElse(hn::RebindMask(di, more), hn::Set(di, row * width), place);
    }
    const auto from = hn::Add(place, hn::Iota(di, 0));
    const SquareRow head = hn::GatherIndex(d, a + column * kSquare, from);
    const SquareRow inverse = hn::Div(hn::Set(d, 1.0), head);
    regular = hn::AndNot(hn::Eq(head, hn::Zero(d)), regular);
    if constexpr (!kInverse) {
      result = hn::Mul(result, head);
      result = hn::IfThenElse(hn::RebindMask(d, hn::Eq(place, own)), result, hn::Neg(result));
    }
    for (int64_t j = kInverse ? 0 : column * kSquare; j < width; j += kSquare) {
      const SquareRow v = hn::GatherIndex(d, a + j, from);
      hn::StoreU(hn::LoadU(d, top + j), d, moved + j);
      hn::StoreU(kInverse ? hn::Mul(v, inverse) : v, d, top + j);
    }
    if constexpr (kInverse) {
      hn::StoreU(place, di, places + column * kSquare);
      eliminate<kInverse, false>(n, column, 0, column, place, inverse, top, moved, a);
    }
    eliminate<kInverse, true>(n, column, column + 1, n, place, inverse, top, moved, a);
    if constexpr (kInverse) hn::StoreU(inverse, d, top + column * kSquare);
  }
  return hn::IfThenElseZero(regular, result);
}

template <typename T>
void determinants_in_lanes(int64_t n, int64_t count, const T* x, T* y, double* room) {
  interleave_matrices(n, count, x, room);
  double* const moved = room + (n * n + 8) * kSquare;
  store_n(narrowed<T>(eliminate_small<false>(n, room, moved, nullptr)), SquareNumbers<T>(), y,
          count);
}

template <typename T>
void inverses_in_lanes(int64_t n, int64_t count, const T* x, T* y, double* room) {
  const SquareTag d;
  double* const moved = room + (n * n + 8) * kSquare;
  auto* const places = reinterpret_cast<int64_t*>(moved + n * kSquare);
  interleave_matrices(n, count, x, room);
  HWY_ALIGN double regular[kSquare];
  hn::Store(eliminate_small<true>(n, room, moved, places), d, regular);
  // Rows that were exchanged are columns of the inverse.
  int64_t to[kSquare][kSmallMatrix];
  for (int64_t m = 0; m < count; ++m) {
    int64_t* const order = to[m];
    for (int64_t j = 0; j < n; ++j) order[j] = j;
    for (int64_t j = 0; j < n; ++j)
      std::swap(order[j], order[places[j * kSquare + m] / (n * kSquare)]);
  }
  for (int64_t i = 0; i < n; ++i) {
    HWY_ALIGN double rows[kSquare][kSmallMatrix];
    for (int64_t j = 0; j < n; j += kSquare) {
      SquareRow v[kSquare];
#pragma GCC unroll 8
      for (int t = 0; t < kSquare; ++t) v[t] = hn::LoadU(d, room + (i * n + j + t) * kSquare);
      transpose_square(v);
#pragma GCC unroll 8
      for (int m = 0; m < kSquare; ++m) hn::StoreU(v[m], d, rows[m] + j);
    }
    for (int64_t m = 0; m < count; ++m) {
      T* const row = y + (m * n + i) * n;
      for (int64_t j = 0; j < n; ++j) row[to[m][j]] = static_cast<T>(rows[m][j]);
    }
  }
  for (int64_t m = 0; m < count; ++m)
    if (regular[m] == 0) std::fill_n(y + m * n * n, n * n, std::numeric_limits<T>::infinity());
}

int64_t square_lanes() { return kSquare; }

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

int64_t small_matrices_together() { return TOMBOLO_TARGET(int64_t(), square_lanes)(); }

template <typename T>
void small_determinants(int64_t n, int64_t count, const T* x, T* y, double* room) {
  using Fn = void(int64_t, int64_t, const T*, T*, double*);
  TOMBOLO_TARGET(Fn, determinants_in_lanes<T>)(n, count, x, y, room);
}

template <typename T>
void small_inverses(int64_t n, int64_t count, const T* x, T* y, double* room) {
  using Fn = void(int64_t, int64_t, const T*, T*, double*);
  TOMBOLO_TARGET(Fn, inverses_in_lanes<T>)(n, count, x, y, room);
}

template void small_determinants(int64_t, int64_t, const float*, float*, double*);
template void small_determinants(int64_t, int64_t, const double*, double*, double*);
template void small_inverses(int64_t, int64_t, const float*, float*, double*);
template void small_inverses(int64_t, int64_t, const double*, double*, double*);

}  // namespace tombolo
#endif
