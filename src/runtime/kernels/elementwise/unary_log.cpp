// Logarithm, circular and hyperbolic functions. Vectors with a lane outside the range for which the
// vector function is good (large angles, infinities, NaN) go lane by lane through the C library.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/unary_log.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/unary-inl.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/math-inl.h"

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
GUARDED(row_asinh, -1e15f, 1e15f, hn::Asinh, asinh)
GUARDED(row_sinh, -85.0f, 85.0f, hn::Sinh, sinh)
#undef GUARDED

/// The root of t from 0 to 1/4.
HWY_INLINE V root_of_share(V t) {
  const F d;
#if HWY_TARGET == HWY_AVX3
  // 14 bits and one step of Newton's: a root of 16 lanes takes as long as all else here.
  const V r{_mm512_rsqrt14_ps(max_of(hn::Set(d, 1e-30f), t).raw)}, root = hn::Mul(t, r);
  return hn::MulAdd(hn::Mul(r, hn::Set(d, 0.5f)), hn::NegMulAdd(root, root, t), root);
#else
  (void)d;
  return hn::Sqrt(t);
#endif
}

/// asin |x| for |x| < 1/2, and where `far` asin of the root of (1 - |x|) / 2, which is half of acos
/// |x|: z + z^3 P(z^2), a minimax fit within 9e-9.
HWY_INLINE V arc(V x, hn::Mask<F>& far) {
  const F d;
  const V half = hn::Set(d, 0.5f), a = hn::Abs(x);
  far = hn::Ge(a, half);
  const V t = hn::IfThenElse(far, hn::NegMulAdd(a, half, half), hn::Mul(a, a));
  const V z = hn::IfThenElse(far, root_of_share(t), a);
  V p = hn::MulAdd(hn::Set(d, 0.0425776951f), t, hn::Set(d, 0.0240438301f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0454681106f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0749565214f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.166667312f));
  return hn::MulAdd(hn::Mul(z, t), p, z);
}
constexpr float kHalfPi = 1.57079637f, kPi = 3.14159274f;
HWY_INLINE V v_asin(F d, V x) {
  hn::Mask<F> far;
  const V y = arc(x, far);
  return hn::CopySign(
      hn::IfThenElse(far, hn::NegMulAdd(y, hn::Set(d, 2.0f), hn::Set(d, kHalfPi)), y), x);
}
HWY_INLINE V v_acos(F d, V x) {
  hn::Mask<F> far;
  const V y = arc(x, far), twice = hn::Add(y, y);
  const V beyond = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, kPi), twice), twice);
  return hn::IfThenElse(far, beyond, hn::Sub(hn::Set(d, kHalfPi), hn::CopySign(y, x)));
}

/// Functions that have no value beyond an interval: NaN there, without a detour.
#define BOUNDED(name, inside, fast)                                                             \
  void name(const float* in, float* out, int64_t n, float, float) {                             \
    const F d;                                                                                  \
    const V one = hn::Set(d, 1.0f);                                                             \
    const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());                          \
    map_row(in, out, n, [&](V x) HWY_ATTR { return hn::IfThenElse(inside, fast(d, x), nan); }); \
  }
BOUNDED(row_asin, hn::Le(hn::Abs(x), one), v_asin)
BOUNDED(row_acos, hn::Le(hn::Abs(x), one), v_acos)
#undef BOUNDED

void row_acosh(const float* in, float* out, int64_t n, float, float) {
  const F d;
  const V one = hn::Set(d, 1.0f), most = hn::Set(d, 1e15f);
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  map_row(in, out, n, [&](V x) HWY_ATTR {
    if (hn::AllFalse(d, hn::Gt(x, most)))
      return hn::IfThenElse(hn::Ge(x, one), hn::Acosh(d, max_of(one, x)), nan);
    HWY_ALIGN float lanes[HWY_LANES(float)];
    hn::Store(x, d, lanes);
    for (float& lane : lanes) lane = std::acosh(lane);
    return hn::Load(d, lanes);
  });
}

void row_atanh(const float* in, float* out, int64_t n, float, float) {
  const F d;
  const V one = hn::Set(d, 1.0f), edge = hn::Set(d, 0.999999f);
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  map_row(in, out, n, [&](V x) HWY_ATTR {
    const V size = hn::Abs(x);
    if (hn::AllFalse(d, hn::And(hn::Gt(size, edge), hn::Le(size, one))))
      return hn::IfThenElse(hn::Le(size, edge),
                            hn::Atanh(d, hn::IfThenElseZero(hn::Le(size, edge), x)), nan);
    HWY_ALIGN float lanes[HWY_LANES(float)];
    hn::Store(x, d, lanes);
    for (float& lane : lanes) lane = std::atanh(lane);
    return hn::Load(d, lanes);
  });
}

/// The tangent as sine over cosine in double, where the poles are far enough away in the digits.
void row_tan(const float* in, float* out, int64_t n, float, float) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto most = hn::Set(h, 30000.0f);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const auto x = load_n(h, in + i, left);
    if (HWY_LIKELY(hn::AllTrue(h, hn::Le(hn::Abs(x), most)))) {
      const auto wide = hn::PromoteTo(d, x);
      store_n(hn::DemoteTo(h, hn::Div(hn::Sin(d, wide), hn::Cos(d, wide))), h, out + i, left);
    } else {
      for (int64_t j = i; j < std::min(n, i + lanes); ++j) out[j] = std::tan(in[j]);
    }
  }
}

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
    ROW(kTan, row_tan)
#undef ROW
    default:
      return nullptr;
  }
}

}  // namespace tombolo
#endif
