#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/norm/moments.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/norm/moments.h"
#include "runtime/kernels/norm/powers-inl.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::Rebind<float, D>;

/// Down columns that lie side by side, some vectors together: whole lines of memory, and sums that
/// do not wait for one another.
constexpr int64_t kColumnVectors = 4;

template <Power kPower>
void sum_columns(const float* x, int64_t n, int64_t step, int64_t width, const double* shifts,
                 double* sums) {
  const D d;
  const DF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + kColumnVectors * lanes <= width; j += kColumnVectors * lanes) {
    VD by[kColumnVectors], sum[kColumnVectors];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kColumnVectors; ++v) {
      by[v] = shifts == nullptr ? hn::Zero(d) : hn::LoadU(d, shifts + j + v * lanes);
      sum[v] = hn::LoadU(d, sums + j + v * lanes);
    }
    for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
      for (int64_t v = 0; v < kColumnVectors; ++v) {
        const VD value = hn::PromoteTo(d, hn::LoadU(f, x + i * step + j + v * lanes));
        sum[v] = add_power<kPower>(sum[v], hn::Sub(value, by[v]));
      }
#pragma GCC unroll 4
    for (int64_t v = 0; v < kColumnVectors; ++v) hn::StoreU(sum[v], d, sums + j + v * lanes);
  }
  for (; j < width; j += lanes) {
    const int64_t left = width - j;
    const VD by = shifts == nullptr ? hn::Zero(d) : load_n(d, shifts + j, left);
    VD sum = load_n(d, sums + j, left);
    for (int64_t i = 0; i < n; ++i)
      sum =
          add_power<kPower>(sum, hn::Sub(hn::PromoteTo(d, load_n(f, x + i * step + j, left)), by));
    store_n(sum, d, sums + j, left);
  }
}

template <typename T>
double any_row(Power power, const T* x, int64_t n, double shift) {
  if (power == Power::kValue) return sum_of_powers<Power::kValue>(x, n, shift);
  if (power == Power::kMagnitude) return sum_of_powers<Power::kMagnitude>(x, n, shift);
  return sum_of_powers<Power::kSquare>(x, n, shift);
}
void any_columns(Power power, const float* x, int64_t n, int64_t step, int64_t width,
                 const double* shifts, double* sums) {
  if (power == Power::kValue) return sum_columns<Power::kValue>(x, n, step, width, shifts, sums);
  if (power == Power::kMagnitude)
    return sum_columns<Power::kMagnitude>(x, n, step, width, shifts, sums);
  sum_columns<Power::kSquare>(x, n, step, width, shifts, sums);
}

void scale_row(const float* x, int64_t n, double shift, double factor, float* y) {
  const D d;
  const DF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const VD by = hn::Set(d, shift), times = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      hn::StoreU(
          hn::DemoteTo(
              f, hn::Mul(hn::Sub(hn::PromoteTo(d, hn::LoadU(f, x + i + v * lanes)), by), times)),
          f, y + i + v * lanes);
  for (; i < n; i += lanes)
    store_n(hn::DemoteTo(f, hn::Mul(hn::Sub(hn::PromoteTo(d, load_n(f, x + i, n - i)), by), times)),
            f, y + i, n - i);
}

void scale_columns(const float* x, int64_t n, int64_t step, int64_t width, const double* shifts,
                   const double* factors, float* y) {
  const D d;
  const DF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + kColumnVectors * lanes <= width; j += kColumnVectors * lanes) {
    VD by[kColumnVectors], times[kColumnVectors];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kColumnVectors; ++v) {
      by[v] = shifts == nullptr ? hn::Zero(d) : hn::LoadU(d, shifts + j + v * lanes);
      times[v] = hn::LoadU(d, factors + j + v * lanes);
    }
    for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
      for (int64_t v = 0; v < kColumnVectors; ++v) {
        const int64_t at = i * step + j + v * lanes;
        const VD value = hn::Sub(hn::PromoteTo(d, hn::LoadU(f, x + at)), by[v]);
        hn::StoreU(hn::DemoteTo(f, hn::Mul(value, times[v])), f, y + at);
      }
  }
  for (; j < width; j += lanes) {
    const int64_t left = width - j;
    const VD by = shifts == nullptr ? hn::Zero(d) : load_n(d, shifts + j, left);
    const VD times = load_n(d, factors + j, left);
    for (int64_t i = 0; i < n; ++i) {
      const VD v = hn::PromoteTo(d, load_n(f, x + i * step + j, left));
      store_n(hn::DemoteTo(f, hn::Mul(hn::Sub(v, by), times)), f, y + i * step + j, left);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
double row_sum_f64(Power power, const T* x, int64_t n, double shift) {
  return TOMBOLO_TARGET(double(Power, const T*, int64_t, double), any_row<T>)(power, x, n, shift);
}
template double row_sum_f64(Power, const float*, int64_t, double);
template double row_sum_f64(Power, const double*, int64_t, double);
void column_sums_f64(Power power, const float* x, int64_t n, int64_t step, int64_t width,
                     const double* shifts, double* sums) {
  TOMBOLO_TARGET(void(Power, const float*, int64_t, int64_t, int64_t, const double*, double*),
                 any_columns)
  (power, x, n, step, width, shifts, sums);
}
void shift_scale_row(const float* x, int64_t n, double shift, double factor, float* y) {
  TOMBOLO_TARGET(void(const float*, int64_t, double, double, float*), scale_row)
  (x, n, shift, factor, y);
}
void shift_scale_columns(const float* x, int64_t n, int64_t step, int64_t width,
                         const double* shifts, const double* factors, float* y) {
  TOMBOLO_TARGET(
      void(const float*, int64_t, int64_t, int64_t, const double*, const double*, float*),
      scale_columns)
  (x, n, step, width, shifts, factors, y);
}

}  // namespace tombolo
#endif
