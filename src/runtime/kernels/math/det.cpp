#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/math/det.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math/det.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using VD = hn::Vec<D>;

/// Columns that are eliminated before the rest of the matrix is gone through.
constexpr int kDepth = 4;

/// kR rows from `to` on lose factors[r][j] * top[j] in columns [begin, n), for kJ rows of `top`.
template <int kR, int kJ>
HWY_INLINE void subtract_rows(const double* factors, const double* top, double* to, int64_t begin,
                              int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VD by[kR][kJ];
#pragma GCC unroll 4
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < kJ; ++j) by[r][j] = hn::Set(d, factors[r * n + j]);
  for (int64_t c = begin; c < n; c += lanes) {
    VD from[kJ];
#pragma GCC unroll 4
    for (int j = 0; j < kJ; ++j) from[j] = load_n(d, top + j * n + c, n - c);
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r) {
      VD v = load_n(d, to + r * n + c, n - c);
#pragma GCC unroll 4
      for (int j = 0; j < kJ; ++j) v = hn::NegMulAdd(by[r][j], from[j], v);
      store_n(v, d, to + r * n + c, n - c);
    }
  }
}

template <int kJ>
void subtract_below(double* a, int64_t first, int64_t row, int64_t begin, int64_t n) {
  constexpr int kRows = HWY_LANES(double) == 8 ? 4 : 2;  // factors stay in registers
  const double* top = a + first * n;
  for (; row + kRows <= n; row += kRows)
    subtract_rows<kRows, kJ>(a + row * n + first, top, a + row * n, begin, n);
  for (; row < n; ++row) subtract_rows<1, kJ>(a + row * n + first, top, a + row * n, begin, n);
}

/// The row below `i` with the greatest number in column i, by its size.
HWY_INLINE int64_t find_pivot(const double* a, int64_t i, int64_t n) {
  int64_t pivot = i;
  double most = std::fabs(a[i * n + i]);
  for (int64_t r = i + 1; r < n; ++r) {
    const double size = std::fabs(a[r * n + i]);
    if (size > most) {
      most = size;
      pivot = r;
    }
  }
  return pivot;
}

double determinant_of(double* a, int64_t n) {
  double result = 1;
  for (int64_t block = 0; block < n; block += kDepth) {
    const int64_t end = std::min(n, block + kDepth);
    for (int64_t i = block; i < end; ++i) {
      const int64_t pivot = find_pivot(a, i, n);
      const double head = a[pivot * n + i];
      if (head == 0) return 0;
      if (pivot != i) {
        result = -result;
        std::swap_ranges(a + i * n + block, a + (i + 1) * n, a + pivot * n + block);
      }
      result *= head;
      const double inverse = 1 / head;
      const double* top = a + i * n;
      for (int64_t r = i + 1; r < n; ++r) {
        double* row = a + r * n;
        const double factor = row[i] *= inverse;
        for (int64_t c = i + 1; c < end; ++c) row[c] -= factor * top[c];
      }
    }
    if (end == n) break;
    // Rows of the block among themselves, then those below.
    for (int64_t i = block + 1; i < end; ++i)
      for (int64_t j = block; j < i; ++j)
        subtract_rows<1, 1>(a + i * n + j, a + j * n, a + i * n, end, n);
    subtract_below<kDepth>(a, block, end, end, n);
  }
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

double determinant_f64(double* a, int64_t n) {
  return TOMBOLO_TARGET(double(double*, int64_t), determinant_of)(a, n);
}

}  // namespace tombolo
#endif
