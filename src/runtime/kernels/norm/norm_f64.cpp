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

void normalize_row(const double* x, int64_t n, double shift, double factor, const double* scale,
                   const double* bias, double* y) {
  using Fn = void(const double*, int64_t, double, double, const double*, const double*, double*);
  TOMBOLO_TARGET(Fn, normalize)(x, n, shift, factor, scale, bias, y);
}

}  // namespace tombolo
#endif
