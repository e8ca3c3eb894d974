// x to the power of y: e^(y log x) in double, which is exact enough for floats; lanes that are not
// a positive number to a finite power go through the C library.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/binary_pow.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "runtime/kernels/binary.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/unary.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void pow_row(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> h;
  using H = decltype(h);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* p = static_cast<const float*>(a);
  const float* q = static_cast<const float*>(b);
  float* out = static_cast<float*>(y);
  const auto least = hn::Set(h, 1.17549435e-38f), most = hn::Set(h, 3.4028235e38f);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    HWY_ALIGN float x[hn::MaxLanes(H())], e[hn::MaxLanes(H())];
    for (int64_t j = 0; j < lanes; ++j) {
      x[j] = j < left ? p[a_repeats ? 0 : i + j] : 1.0f;
      e[j] = j < left ? q[b_repeats ? 0 : i + j] : 1.0f;
    }
    const auto xv = hn::Load(h, x), ev = hn::Load(h, e);
    const auto good =
        hn::And(hn::And(hn::Ge(xv, least), hn::Le(xv, most)), hn::Le(hn::Abs(ev), most));
    if (HWY_LIKELY(hn::AllTrue(h, good))) {
      const auto power = hn::Mul(hn::PromoteTo(d, ev), hn::Log(d, hn::PromoteTo(d, xv)));
      const auto limit = hn::Set(d, 200.0);
      const auto result = hn::Exp(d, hn::Max(hn::Neg(limit), hn::Min(limit, power)));
      hn::Store(hn::DemoteTo(h, result), h, x);
    } else {
      for (int64_t j = 0; j < lanes; ++j) x[j] = std::pow(x[j], e[j]);
    }
    for (int64_t j = 0; j < std::min(lanes, left); ++j) out[i + j] = x[j];
  }
}

void power_row(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y, int64_t n) {
  // Squares are exact by one multiplication.
  if (b_repeats && !a_repeats && *static_cast<const float*>(b) == 2) {
    const hn::ScalableTag<float> f;
    const auto lanes = static_cast<int64_t>(hn::Lanes(f));
    const float* p = static_cast<const float*>(a);
    float* out = static_cast<float*>(y);
    for (int64_t i = 0; i < n; i += lanes) {
      const auto x = load_n(f, p + i, n - i);
      store_n(hn::Mul(x, x), f, out + i, n - i);
    }
    return;
  }
  pow_row(a, a_repeats, b, b_repeats, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

BinaryFn* pow_fn() { return TOMBOLO_TARGET(BinaryFn, power_row).get(); }

}  // namespace tombolo
#endif
