#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/inverse.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/inverse.h"

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

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool invert(int64_t n, double* matrix, double* factors, int64_t* order) {
  using Fn = bool(int64_t, double*, double*, int64_t*);
  return TOMBOLO_TARGET(Fn, invert_any)(n, matrix, factors, order);
}

}  // namespace tombolo
#endif
