#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/math/inverse.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math/inverse.h"
#include "runtime/kernels/math/square-inl.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_INVERSE_WORK
#define TOMBOLO_INVERSE_WORK
namespace tombolo {

/// Columns whose pivots are found before all rows lose what those rows take from them.
inline int64_t inverse_block(int64_t n) { return n <= 128 ? 8 : 16; }
inline int64_t inverse_rows(int64_t n) { return (n + 7) / 8 * 8; }
/// How far apart the rows lie: whole blocks, and not all in one set of the caches.
inline int64_t inverse_step(int64_t n) {
  const int64_t block = inverse_block(n);
  return (n + block - 1) / block * block + (n >= 32 ? 8 : 0);
}

/// A matrix whose rows stay where they are: order[c] is the row of which pivot c was found.
struct InverseWork {
  double* matrix;    ///< [rows][step]: what lies behind n numbers of n rows is computed, not read
  double* columns;   ///< [block][rows]: of the block, later what rows take of `tops`, negative
  double* tops;      ///< [block][step]: the rows of the pivots
  double* position;  ///< [rows]: of a row in the order, -1 behind the last
  int64_t* order;    ///< [n]
  bool regular = true;

  InverseWork() = default;
  InverseWork(int64_t n, std::byte* room) {
    const int64_t rows = inverse_rows(n), step = inverse_step(n), block = inverse_block(n);
    matrix = reinterpret_cast<double*>(room);
    columns = matrix + rows * step;
    tops = columns + block * rows;
    position = tops + block * step;
    order = reinterpret_cast<int64_t*>(position + rows);
  }
  static int64_t numbers(int64_t n) {
    const int64_t rows = inverse_rows(n), step = inverse_step(n), block = inverse_block(n);
    return rows * step + block * (rows + step) + 2 * rows;
  }
};

}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void read_matrix(int64_t n, const T* x, InverseWork& w) {
  const SquareTag d;
  const int64_t rows = inverse_rows(n), step = inverse_step(n);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t there = row < n ? n : 0;
    for (int64_t j = 0; j < step; j += kSquare)
      hn::StoreU(
          j < there ? widened<T>(load_n(SquareNumbers<T>(), x + row * n + j, n - j)) : hn::Zero(d),
          d, w.matrix + row * step + j);
    w.position[row] = row < n ? static_cast<double>(row) : -1;
  }
  for (int64_t row = 0; row < n; ++row) w.order[row] = row;
}

/// Columns [first, first + block) of the matrix, as rows.
void take_columns(int64_t n, int64_t first, InverseWork& w) {
  const SquareTag d;
  const int64_t rows = inverse_rows(n), step = inverse_step(n), block = inverse_block(n);
  for (int64_t row = 0; row < rows; row += kSquare)
    for (int64_t j = 0; j < block; j += kSquare) {
      SquareRow v[kSquare];
#pragma GCC unroll 8
      for (int i = 0; i < kSquare; ++i)
        v[i] = hn::LoadU(d, w.matrix + (row + i) * step + first + j);
      transpose_square(v);
#pragma GCC unroll 8
      for (int i = 0; i < kSquare; ++i) hn::StoreU(v[i], d, w.columns + (j + i) * rows + row);
    }
}

/// The place in the order of the row that has the greatest number of `column`, the first of them.
/// No number is never greater.
HWY_INLINE int64_t find_place(int64_t column, int64_t rows, const double* numbers,
                              const InverseWork& w) {
  const SquareTag d;
  const SquareRow from = hn::Set(d, static_cast<double>(column)), none = hn::Set(d, -1.0);
  const SquareRow last = hn::Set(d, static_cast<double>(rows));
  const auto size_of = [&](int64_t row, SquareRow place) HWY_ATTR {
    const SquareRow v = hn::LoadU(d, numbers + row);
    return hn::IfThenElse(hn::And(hn::Ge(place, from), hn::Eq(v, v)), hn::Abs(v), none);
  };
  SquareRow most = none;
  for (int64_t row = 0; row < rows; row += kSquare)
    most = max_of(most, size_of(row, hn::LoadU(d, w.position + row)));
  most = hn::MaxOfLanes(d, most);
  SquareRow least = last;
  for (int64_t row = 0; row < rows; row += kSquare) {
    const SquareRow place = hn::LoadU(d, w.position + row);
    const auto found = hn::And(hn::Eq(size_of(row, place), most), hn::Ge(place, from));
    least = min_of(least, hn::IfThenElse(found, place, last));
  }
  const double head = numbers[w.order[column]];
  return head != head ? column : static_cast<int64_t>(hn::GetLane(hn::MinOfLanes(d, least)));
}

/// Finds the pivot of column first + j, of `count` in the block, and takes it from the others.
void pivot_column(int64_t n, int64_t first, int64_t j, int64_t count, InverseWork& w) {
  const SquareTag d;
  const int64_t rows = inverse_rows(n), step = inverse_step(n), block = inverse_block(n);
  const int64_t column = first + j;
  double* const own = w.columns + j * rows;
  const int64_t place = find_place(column, rows, own, w), pivot = w.order[place];
  const int64_t before = w.order[column];
  const double head = own[pivot];
  if (head == 0) {
    w.regular = false;
    return;
  }
  w.order[place] = before;
  w.order[column] = pivot;
  // All lanes are written at once: a vector that is read behind a single number written to it
  // would wait.
  const double inverse = 1 / head;
  const SquareRow here = hn::Set(d, static_cast<double>(pivot));
  const SquareRow there = hn::Set(d, static_cast<double>(before));
  const SquareRow lanes = hn::Set(d, static_cast<double>(kSquare));
  SquareRow at = hn::Iota(d, 0);
  for (int64_t row = 0; row < rows; row += kSquare, at = hn::Add(at, lanes)) {
    SquareRow places = hn::LoadU(d, w.position + row);
    places = hn::IfThenElse(hn::Eq(at, there), hn::Set(d, static_cast<double>(place)), places);
    places = hn::IfThenElse(hn::Eq(at, here), hn::Set(d, static_cast<double>(column)), places);
    hn::StoreU(places, d, w.position + row);
    hn::StoreU(hn::IfThenZeroElse(hn::Eq(at, here), hn::Neg(hn::LoadU(d, own + row))), d,
               own + row);
  }
  for (int64_t i = j + 1; i < count; ++i) {
    double* const other = w.columns + i * rows;
    const SquareRow top = hn::Set(d, other[pivot] * inverse);
    at = hn::Iota(d, 0);
    for (int64_t row = 0; row < rows; row += kSquare, at = hn::Add(at, lanes)) {
      const SquareRow old = hn::IfThenElse(hn::Eq(at, here), top, hn::LoadU(d, other + row));
      hn::StoreU(hn::MulAdd(hn::LoadU(d, own + row), top, old), d, other + row);
    }
  }
  // The inverse grows in the columns that are done.
  const SquareRow by = hn::Set(d, inverse);
  for (int64_t k = 0; k < step; k += kSquare) {
    SquareRow sum;
    if (k >= first && k < first + block)
      sum = hn::IfThenElseZero(
          hn::Eq(hn::Iota(d, static_cast<double>(k)), hn::Set(d, static_cast<double>(column))),
          hn::Set(d, 1.0));
    else
      sum = hn::LoadU(d, w.matrix + pivot * step + k);
    for (int64_t i = 0; i < j; ++i)
      sum = hn::MulAdd(hn::Set(d, w.columns[i * rows + pivot]), hn::LoadU(d, w.tops + i * step + k),
                       sum);
    hn::StoreU(hn::Mul(sum, by), d, w.tops + j * step + k);
  }
  for (int64_t i = 0; i < j; ++i) w.columns[i * rows + pivot] = 0;
}

/// kR rows from `row` on gain count products of columns and tops, in kC vectors from k on.
template <int kR, int kC>
void add_inverse_tile(int64_t rows, int64_t step, int64_t count, int64_t row, int64_t k,
                      const InverseWork& w) {
  const SquareTag d;
  double* const at = w.matrix + row * step + k;
  SquareRow sums[kR][kC];
#pragma GCC unroll 4
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) sums[r][c] = hn::LoadU(d, at + r * step + c * kSquare);
  for (int64_t j = 0; j < count; ++j) {
    SquareRow tops[kC];
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) tops[c] = hn::LoadU(d, w.tops + j * step + k + c * kSquare);
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r) {
      const SquareRow factor = hn::Set(d, w.columns[j * rows + row + r]);
#pragma GCC unroll 4
      for (int c = 0; c < kC; ++c) add_product(sums[r][c], factor, tops[c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) hn::StoreU(sums[r][c], d, at + r * step + c * kSquare);
}

template <int kC>
void add_inverse_tiles(int64_t n, int64_t count, int64_t k, const InverseWork& w) {
  const int64_t rows = inverse_rows(n), step = inverse_step(n);
  int64_t row = 0;
  for (; row + 4 <= n; row += 4) add_inverse_tile<4, kC>(rows, step, count, row, k, w);
  for (; row < n; ++row) add_inverse_tile<1, kC>(rows, step, count, row, k, w);
}

/// What all rows lose to the pivots of a block. Those of the pivots are `tops` until then, and of
/// the block's columns nothing is left.
void finish_block(int64_t n, int64_t first, int64_t count, const InverseWork& w) {
  const SquareTag d;
  const int64_t step = inverse_step(n), block = inverse_block(n);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t k = 0; k < block; k += kSquare)
      hn::StoreU(hn::Zero(d), d, w.matrix + row * step + first + k);
  for (int64_t j = 0; j < count; ++j)
    std::copy_n(w.tops + j * step, step, w.matrix + w.order[first + j] * step);
  constexpr int kC = kSquare == 8 ? 3 : 2;
  int64_t k = 0;
  for (; k + kC * kSquare <= n; k += kC * kSquare) add_inverse_tiles<kC>(n, count, k, w);
  for (; k < n; k += kSquare) add_inverse_tiles<1>(n, count, k, w);
}

template <typename T>
void write_inverse(int64_t n, const InverseWork& w, T* y) {
  if (!w.regular) {
    std::fill_n(y, n * n, std::numeric_limits<T>::infinity());
    return;
  }
  // Rows that were exchanged are columns of the inverse.
  const int64_t step = inverse_step(n);
  for (int64_t i = 0; i < n; ++i, y += n) {
    const double* const row = w.matrix + w.order[i] * step;
    for (int64_t j = 0; j < n; ++j) y[w.order[j]] = static_cast<T>(row[j]);
  }
}

template <typename T>
void invert_some(int64_t n, int64_t count, const T* x, T* y, std::byte* room) {
  InverseWork work[kInverseTogether];
  for (int64_t m = 0; m < count; ++m) {
    work[m] =
        InverseWork(n, room + m * InverseWork::numbers(n) * static_cast<int64_t>(sizeof(double)));
    read_matrix(n, x + m * n * n, work[m]);
  }
  const int64_t block = inverse_block(n);
  for (int64_t first = 0; first < n; first += block) {
    const int64_t columns = std::min(block, n - first);
    for (int64_t m = 0; m < count; ++m) take_columns(n, first, work[m]);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t m = 0; m < count; ++m)
        if (work[m].regular) pivot_column(n, first, j, columns, work[m]);
    for (int64_t m = 0; m < count; ++m)
      if (work[m].regular) finish_block(n, first, columns, work[m]);
  }
  for (int64_t m = 0; m < count; ++m) write_inverse(n, work[m], y + m * n * n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

size_t inverse_bytes(int64_t n) {
  return static_cast<size_t>(InverseWork::numbers(n) * inverse_together(n)) * sizeof(double);
}

template <typename T>
void invert_matrices(int64_t n, int64_t count, const T* x, T* y, std::byte* room) {
  using Fn = void(int64_t, int64_t, const T*, T*, std::byte*);
  TOMBOLO_TARGET(Fn, invert_some<T>)(n, count, x, y, room);
}

template void invert_matrices(int64_t, int64_t, const float*, float*, std::byte*);
template void invert_matrices(int64_t, int64_t, const double*, double*, std::byte*);

}  // namespace tombolo
#endif
