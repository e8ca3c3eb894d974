#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/math/inverse.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math/inverse.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows are whole vectors: what lies behind their n numbers is computed as well and never read.
bool invert_any(int64_t n, double* matrix, double* factors, int64_t* order) {
  const hn::CappedTag<double, 8> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = inverse_step(n);
  for (int64_t column = 0; column < n; ++column) {
    for (int64_t row = 0; row < n; ++row) factors[row] = matrix[row * step + column];
    int64_t pivot = column;
    double most = std::fabs(factors[column]);
    for (int64_t row = column + 1; row < n; ++row) {
      const double size = std::fabs(factors[row]);
      if (size > most) {
        most = size;
        pivot = row;
      }
    }
    double* const top = matrix + column * step;
    const double head = factors[pivot];
    if (head == 0) return false;
    order[column] = pivot;
    if (pivot != column) {
      std::swap_ranges(top, top + n, matrix + pivot * step);
      factors[pivot] = factors[column];
    }
    // The inverse grows in the columns that are done. Of its new column only registers know: a
    // vector that is read behind a single number written to it would wait.
    const int64_t near = column / lanes * lanes;
    const auto place =
        hn::Eq(hn::Iota(d, static_cast<double>(near)), hn::Set(d, static_cast<double>(column)));
    const auto inverse_head = hn::Set(d, 1 / head);
    for (int64_t j = 0; j < n; j += lanes) {
      const auto row = hn::Mul(hn::LoadU(d, top + j), inverse_head);
      hn::StoreU(j == near ? hn::IfThenElse(place, inverse_head, row) : row, d, top + j);
    }
    for (int64_t row = 0; row < n; ++row) {
      if (row == column) continue;
      double* const at = matrix + row * step;
      const auto factor = hn::Set(d, factors[row]);
      for (int64_t j = 0; j < n; j += lanes) {
        auto old = hn::LoadU(d, at + j);
        if (j == near) old = hn::IfThenZeroElse(place, old);
        hn::StoreU(hn::NegMulAdd(factor, hn::LoadU(d, top + j), old), d, at + j);
      }
    }
  }
  // Rows that were exchanged are columns of the inverse.
  for (int64_t column = n; column-- > 0;)
    if (order[column] != column)
      for (int64_t row = 0; row < n; ++row)
        std::swap(matrix[row * step + column], matrix[row * step + order[column]]);
  return true;
}

/// rows [0, n) -= kInverseBlock products of factors[j][row] and tops[j], four rows at a time.
void subtract_products(int64_t n, int64_t step, const double* factors, const double* tops,
                       double* matrix) {
  const hn::CappedTag<double, 8> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kRows = 4;
  const auto some = [&](int64_t row, auto count) HWY_ATTR {
    constexpr int kCount = decltype(count)::value;
    double* const at = matrix + row * step;
    for (int64_t k = 0; k < n; k += lanes) {
      V sums[kCount];
#pragma GCC unroll 4
      for (int r = 0; r < kCount; ++r) sums[r] = hn::LoadU(d, at + r * step + k);
#pragma GCC unroll 8
      for (int64_t j = 0; j < kInverseBlock; ++j) {
        const V top = hn::LoadU(d, tops + j * step + k);
#pragma GCC unroll 4
        for (int r = 0; r < kCount; ++r)
          sums[r] = hn::NegMulAdd(hn::Set(d, factors[j * n + row + r]), top, sums[r]);
      }
#pragma GCC unroll 4
      for (int r = 0; r < kCount; ++r) hn::StoreU(sums[r], d, at + r * step + k);
    }
  };
  int64_t row = 0;
  for (; row + kRows <= n; row += kRows) some(row, std::integral_constant<int, kRows>());
  for (; row < n; ++row) some(row, std::integral_constant<int, 1>());
}

/// The same for matrices that no near cache holds: what several columns take from all rows is
/// taken at once. Until then a row is what the matrix has, less the products of its factors.
bool invert_large(int64_t n, double* matrix, double* factors, int64_t* order) {
  const int64_t step = inverse_step(n);
  double* const tops = factors + kInverseBlock * n;
  for (int64_t first = 0; first < n; first += kInverseBlock) {
    const int64_t count = std::min(kInverseBlock, n - first);
    std::fill_n(factors, kInverseBlock * n, 0.0);
    std::fill_n(tops, kInverseBlock * step, 0.0);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t column = first + j;
      double* const own = factors + j * n;
      for (int64_t row = 0; row < n; ++row) own[row] = matrix[row * step + column];
      for (int64_t i = 0; i < j; ++i) {
        const double top = tops[i * step + column];
        for (int64_t row = 0; row < n; ++row) own[row] -= factors[i * n + row] * top;
      }
      int64_t pivot = column;
      for (int64_t row = column + 1; row < n; ++row)
        if (std::fabs(own[row]) > std::fabs(own[pivot])) pivot = row;
      const double head = own[pivot];
      if (head == 0) return false;
      order[column] = pivot;
      if (pivot != column) {
        std::swap_ranges(matrix + column * step, matrix + column * step + n, matrix + pivot * step);
        for (int64_t i = 0; i <= j; ++i) std::swap(factors[i * n + pivot], factors[i * n + column]);
      }
      double* const row_here = matrix + column * step;
      double* const top = tops + j * step;
      std::copy_n(row_here, n, top);
      for (int64_t i = 0; i < j; ++i) {
        const double factor = factors[i * n + column];
        for (int64_t k = 0; k < n; ++k) top[k] -= factor * tops[i * step + k];
        factors[i * n + column] = 0;
      }
      for (int64_t k = 0; k < n; ++k) top[k] /= head;
      // The inverse grows in the columns that are done.
      for (int64_t row = 0; row < n; ++row) matrix[row * step + column] = 0;
      for (int64_t i = 0; i < j; ++i) tops[i * step + column] = 0;
      top[column] = 1 / head;
      std::copy_n(top, n, row_here);
      own[column] = 0;
    }
    subtract_products(n, step, factors, tops, matrix);
  }
  for (int64_t column = n; column-- > 0;)
    if (order[column] != column)
      for (int64_t row = 0; row < n; ++row)
        std::swap(matrix[row * step + column], matrix[row * step + order[column]]);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool invert(int64_t n, double* matrix, double* factors, int64_t* order) {
  using Fn = bool(int64_t, double*, double*, int64_t*);
  constexpr int64_t kLarge = 48;
  return (n < kLarge ? TOMBOLO_TARGET(Fn, invert_any) : TOMBOLO_TARGET(Fn, invert_large))(
      n, matrix, factors, order);
}

}  // namespace tombolo
#endif
