// Logarithm, circular and hyperbolic functions. Vectors with a lane outside the range for which the
// vector function is good (large angles, infinities, NaN) go lane by lane through the C library.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/unary_log.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/unary-inl.h"
#include "runtime/kernels/unary.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {

TOMBOLO_UNARY(row_log, v_log(d, x))

/// `fast` where lo <= x <= hi holds in all lanes.
template <typename Fast>
HWY_INLINE void guarded(const float* in, float* out, int64_t n, float lo, float hi, Fast&& fast,
                        float (*exact)(float)) {
  const F d;
  const V low = hn::Set(d, lo), high = hn::Set(d, hi);
  map_row(in, out, n, [&](V x) HWY_ATTR {
    if (hn::AllTrue(d, hn::And(hn::Ge(x, low), hn::Le(x, high)))) return fast(x);
    HWY_ALIGN float lanes[HWY_LANES(float)];
    hn::Store(x, d, lanes);
    for (float& lane : lanes) lane = exact(lane);
    return hn::Load(d, lanes);
  });
}

#define GUARDED(name, lo, hi, fast, exact)                            \
  void name(const float* in, float* out, int64_t n, float, float) {   \
    const F d;                                                        \
    guarded(                                                          \
        in, out, n, lo, hi, [&](V x) HWY_ATTR { return fast(d, x); }, \
        [](float x) { return std::exact(x); });                       \
  }
GUARDED(row_sin, -30000.0f, 30000.0f, hn::Sin, sin)
GUARDED(row_cos, -30000.0f, 30000.0f, hn::Cos, cos)
GUARDED(row_atan, -1e30f, 1e30f, hn::Atan, atan)
GUARDED(row_asin, -1.0f, 1.0f, hn::Asin, asin)
GUARDED(row_acos, -1.0f, 1.0f, hn::Acos, acos)
GUARDED(row_asinh, -1e15f, 1e15f, hn::Asinh, asinh)
GUARDED(row_acosh, 1.0f, 1e15f, hn::Acosh, acosh)
GUARDED(row_atanh, -0.999999f, 0.999999f, hn::Atanh, atanh)
GUARDED(row_sinh, -85.0f, 85.0f, hn::Sinh, sinh)
#undef GUARDED

void row_cosh(const float* in, float* out, int64_t n, float, float) {
  const F d;
  guarded(
      in, out, n, -85.0f, 85.0f,
      [&](V x) HWY_ATTR {
        const V half = hn::Set(d, 0.5f), e = hn::Exp(d, hn::Abs(x));
        return hn::MulAdd(half, e, hn::Div(half, e));
      },
      [](float x) { return std::cosh(x); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

UnaryFn* log_fn(Unary op) {
  switch (op) {
#define ROW(id, name) \
  case Unary::id:     \
    return TOMBOLO_TARGET(UnaryFn, name).get();
    ROW(kLog, row_log)
    ROW(kSin, row_sin)
    ROW(kCos, row_cos)
    ROW(kAtan, row_atan)
    ROW(kAsinh, row_asinh)
    ROW(kAcosh, row_acosh)
    ROW(kAtanh, row_atanh)
    ROW(kAsin, row_asin)
    ROW(kAcos, row_acos)
    ROW(kSinh, row_sinh)
    ROW(kCosh, row_cosh)
#undef ROW
    default:
      return nullptr;
  }
}

}  // namespace tombolo
#endif
