// Sums of rows in double; included once for each target (Highway's include guards toggle).
#if defined(TOMBOLO_POWERS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_POWERS_INL_H
#undef TOMBOLO_POWERS_INL_H
#else
#define TOMBOLO_POWERS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "runtime/kernels/norm/moments.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using VD = hn::Vec<D>;

/// A vector of floats or doubles as doubles.
template <class DT>
HWY_INLINE VD as_doubles(hn::Vec<DT> v) {
  if constexpr (sizeof(hn::TFromD<DT>) == 8)
    return v;
  else
    return hn::PromoteTo(D(), v);
}
template <typename T>
HWY_INLINE VD load_doubles(const T* x) {
  const hn::Rebind<T, D> dt;
  return as_doubles<decltype(dt)>(hn::LoadU(dt, x));
}

template <Power kPower>
HWY_INLINE VD add_power(VD sum, VD x) {
  if constexpr (kPower == Power::kValue) return hn::Add(sum, x);
  if constexpr (kPower == Power::kMagnitude) return hn::Add(sum, hn::Abs(x));
  return hn::MulAdd(x, x, sum);
}

/// The sum of (x[i] - shift) to the power over n numbers, of float or double.
template <Power kPower, typename T>
HWY_INLINE double sum_of_powers(const T* x, int64_t n, double shift) {
  const D d;
  const hn::Rebind<T, D> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const VD by = hn::Set(d, shift);
  VD sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v)
      sum[v] = add_power<kPower>(sum[v], hn::Sub(load_doubles(x + i + v * lanes), by));
  for (; i + 2 * lanes <= n; i += 2 * lanes)  // short rows: two that do not wait for each other
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      sum[v] = add_power<kPower>(sum[v], hn::Sub(load_doubles(x + i + v * lanes), by));
  for (; i < n; i += lanes) {
    const int64_t left = n - i;
    const VD value = hn::Sub(as_doubles<decltype(dt)>(load_n(dt, x + i, left)), by);
    sum[0] = add_power<kPower>(
        sum[0], left >= lanes
                    ? value
                    : hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), value));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
