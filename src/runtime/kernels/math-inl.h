// Vector functions of floats with the edges that ONNX wants (NaN in, NaN out; infinities). Included
// once for each target. Error bounds are measured by tests/unit/runtime/kernels/math_test.cpp.
#if defined(TOMBOLO_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_MATH_INL_H
#undef TOMBOLO_MATH_INL_H
#else
#define TOMBOLO_MATH_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// e^x within 1 ULP.
template <class D, class V>
HWY_INLINE V v_exp(D d, V x) {
  const V y = hn::Exp(d, hn::Min(x, hn::Set(d, 104.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// e^x for x <= 0 (or NaN): no overflow to look after. Underflows to 0 below -104.
template <class D, class V>
HWY_INLINE V v_exp_negative(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

/// 1 / (1 + e^-x) within 3 ULP.
template <class D, class V>
HWY_INLINE V v_sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = v_exp_negative(d, hn::Neg(hn::Abs(x)));
  const V r = hn::Div(one, hn::Add(one, e));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(e, r), r);
}

/// Error function within 2 ULP: an odd polynomial near 0, 1 - e^p(|x|) beyond.
template <class D, class V>
HWY_INLINE V v_erf(D d, V x) {
  const V t = hn::Abs(x), s = hn::Mul(x, x);
  V far = hn::MulAdd(hn::Set(d, -1.72853470e-5f), t, hn::Set(d, 3.83197126e-4f));
  const V mid = hn::MulAdd(hn::Set(d, -3.88396438e-3f), t, hn::Set(d, 2.42546219e-2f));
  far = hn::MulAdd(far, s, mid);
  far = hn::MulAdd(far, t, hn::Set(d, -1.06777877e-1f));
  far = hn::MulAdd(far, t, hn::Set(d, -6.34846687e-1f));
  far = hn::MulAdd(far, t, hn::Set(d, -1.28717512e-1f));
  far = hn::MulAdd(far, t, hn::Neg(t));
  // Beyond 4 the result is 1; the polynomial is not good there.
  far = hn::IfThenElse(hn::Gt(t, hn::Set(d, 4.0f)), hn::Set(d, -30.0f), far);
  far = hn::Sub(hn::Set(d, 1.0f), hn::Exp(d, far));
  far = hn::CopySign(far, x);
  V near = hn::MulAdd(hn::Set(d, -5.96761703e-4f), s, hn::Set(d, 4.99119423e-3f));
  near = hn::MulAdd(near, s, hn::Set(d, -2.67681349e-2f));
  near = hn::MulAdd(near, s, hn::Set(d, 1.12819925e-1f));
  near = hn::MulAdd(near, s, hn::Set(d, -3.76125336e-1f));
  near = hn::MulAdd(near, s, hn::Set(d, 1.28379166e-1f));
  near = hn::MulAdd(near, x, x);
  const V y = hn::IfThenElse(hn::Gt(t, hn::Set(d, 0.927734375f)), far, near);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// tanh within 4 ULP.
template <class D, class V>
HWY_INLINE V v_tanh(D d, V x) {
  const V limit = hn::Set(d, 10.0f);
  const V y = hn::Tanh(d, hn::Min(limit, hn::Max(hn::Neg(limit), x)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// e^x - 1 for x <= 0 (or NaN) within 4 ULP.
template <class D, class V>
HWY_INLINE V v_expm1_negative(D d, V x) {
  const V y = hn::Expm1(d, hn::Max(x, hn::Set(d, -100.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// Natural logarithm within 4 ULP.
template <class D, class V>
HWY_INLINE V v_log(D d, V x) {
  const V zero = hn::Zero(d), infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  V y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  y = hn::IfThenElse(hn::Lt(x, zero), nan, y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// log(1 + e) for 0 <= e <= 1 within 3 ULP.
template <class D, class V>
HWY_INLINE V v_log1p_unit(D d, V e) {
  return hn::IfThenElse(hn::IsNaN(e), e, hn::Log1p(d, e));
}

/// log(1 + e^x) within 4 ULP.
template <class D, class V>
HWY_INLINE V v_softplus(D d, V x) {
  const V e = v_exp_negative(d, hn::Neg(hn::Abs(x)));
  return hn::Add(hn::Max(x, hn::Zero(d)), v_log1p_unit(d, e));
}

template <class D, class V>
HWY_INLINE V v_gelu(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::Mul(half,
                 hn::Add(hn::Set(d, 1.0f), v_erf(d, hn::Mul(x, hn::Set(d, 0.70710678118654752f)))));
}

template <class D, class V>
HWY_INLINE V v_gelu_tanh(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  const V cube = hn::Mul(hn::Mul(x, hn::Set(d, 0.044715f)), hn::Mul(x, x));
  const V inner = hn::Mul(hn::Set(d, 0.79788456080286536f), hn::Add(x, cube));
  return hn::Mul(half, hn::Add(hn::Set(d, 1.0f), v_tanh(d, inner)));
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
