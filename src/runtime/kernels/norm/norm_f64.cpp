#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/norm/norm_f64.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/norm/norm_f64.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

template <SumOf kOf>
double sum_of_row(const double* x, int64_t n, double shift) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, shift);
  const auto take = [&](V sum, V v) HWY_ATTR {
    if constexpr (kOf == SumOf::kSquares) return hn::MulAdd(v, v, sum);
    return hn::Add(sum, kOf == SumOf::kMagnitudes ? hn::Abs(v) : v);
  };
  V sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      sums[k] = take(sums[k], hn::Sub(hn::LoadU(d, x + i + k * lanes), by));
  for (; i < n; i += lanes) {
    const V v = hn::Sub(load_n(d, x + i, n - i), by);
    const auto inside = hn::FirstN(d, static_cast<size_t>(n - i < lanes ? n - i : lanes));
    sums[0] = take(sums[0], hn::IfThenElseZero(inside, v));
  }
  return hn::GetLane(
      hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

double sum_any(SumOf of, const double* x, int64_t n, double shift) {
  switch (of) {
    case SumOf::kValues:
      return sum_of_row<SumOf::kValues>(x, n, shift);
    case SumOf::kMagnitudes:
      return sum_of_row<SumOf::kMagnitudes>(x, n, shift);
    default:
      return sum_of_row<SumOf::kSquares>(x, n, shift);
  }
}

void normalize(const double* x, int64_t n, double shift, double factor, const double* scale,
               const double* bias, double* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, shift), times = hn::Set(d, factor);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    V v = hn::Mul(hn::Sub(load_n(d, x + i, left), by), times);
    if (scale != nullptr) v = hn::Mul(v, load_n(d, scale + i, left));
    if (bias != nullptr) v = hn::Add(v, load_n(d, bias + i, left));
    store_n(v, d, y + i, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

double row_sum(SumOf of, const double* x, int64_t n, double shift) {
  return TOMBOLO_TARGET(double(SumOf, const double*, int64_t, double), sum_any)(of, x, n, shift);
}
void normalize_row(const double* x, int64_t n, double shift, double factor, const double* scale,
                   const double* bias, double* y) {
  using Fn = void(const double*, int64_t, double, double, const double*, const double*, double*);
  TOMBOLO_TARGET(Fn, normalize)(x, n, shift, factor, scale, bias, y);
}

}  // namespace tombolo
#endif
