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

/// x * 2^n for a whole n from -150 to 128, with `bits` the bits of n + kExpMagic.
inline constexpr float kExpMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
template <class D, class V>
HWY_INLINE V v_times_power_of_2(D d, V x, V n, V shifted) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {
    (void)d, (void)shifted;
    return V{_mm512_scalef_ps(x.raw, n.raw)};
  } else
#endif
  {
    (void)n;
    const hn::RebindToSigned<D> di;
    const auto whole = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, hn::Set(d, kExpMagic)));
    const auto half = hn::ShiftRight<1>(whole), bias = hn::Set(di, 127);
    const auto power = [&](auto e)
                           HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(e, bias))); };
    return hn::Mul(hn::Mul(x, power(half)), power(hn::Sub(whole, half)));
  }
}

/// The same for n up to 127, where it is shorter: what falls below 2^-126 may become 0.
template <class D, class V>
HWY_INLINE V v_times_small_power(D d, V x, V n, V shifted) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {
    return v_times_power_of_2(d, x, n, shifted);
  } else
#endif
  {
    (void)n;
    const hn::RebindToSigned<D> di;
    const auto bias = hn::Sub(hn::Set(di, 127), hn::BitCast(di, hn::Set(d, kExpMagic)));
    const auto e = hn::Max(hn::Zero(di), hn::Add(hn::BitCast(di, shifted), bias));
    return hn::Mul(x, hn::BitCast(d, hn::ShiftLeft<23>(e)));
  }
}

/// e^x - 1 for |x| <= log(2) / 2 is r * p(r): the minimax polynomial p.
template <class D, class V>
HWY_INLINE V v_expm1_polynomial(D d, V r) {
  V p = hn::MulAdd(hn::Set(d, 0.001393368816934526f), r, hn::Set(d, 0.008363205008208752f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041666463017463684f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16666576266288757f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  return hn::MulAdd(p, r, hn::Set(d, 1.0f));
}

/// x = n log(2) + r: gives r, and n as it is and with kExpMagic added.
template <class D, class V>
HWY_INLINE V v_exp_reduce(D d, V x, V& n, V& shifted) {
  const V magic = hn::Set(d, kExpMagic);
  shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  n = hn::Sub(shifted, magic);
  const V r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
  return hn::NegMulAdd(n, hn::Set(d, 1.428606765330187045e-06f), r);
}

/// e^x within 1 ULP for -104 <= x <= 89, NaN for NaN.
template <class D, class V>
HWY_INLINE V v_exp_inside(D d, V x) {
  V n, shifted;
  const V r = v_exp_reduce(d, x, n, shifted);
  return v_times_power_of_2(d, hn::MulAdd(v_expm1_polynomial(d, r), r, hn::Set(d, 1.0f)), n,
                            shifted);
}

// Min(limit, x) and Max(limit, x) in this order give x when it is NaN.

/// e^x within 1 ULP.
template <class D, class V>
HWY_INLINE V v_exp(D d, V x) {
  return v_exp_inside(d, hn::Max(hn::Set(d, -104.0f), hn::Min(hn::Set(d, 89.0f), x)));
}

/// e^x within 1 ULP for x <= 0 (or NaN): no overflow to look after. Below -87.3, where results are
/// subnormal, it may be 0.
template <class D, class V>
HWY_INLINE V v_exp_negative(D d, V x) {
  V n, shifted;
  const V r = v_exp_reduce(d, hn::Max(hn::Set(d, -104.0f), x), n, shifted);
  return v_times_small_power(d, hn::MulAdd(v_expm1_polynomial(d, r), r, hn::Set(d, 1.0f)), n,
                             shifted);
}

/// 1 / x for finite x >= 1 (or NaN) within 1 ULP.
template <class D, class V>
HWY_INLINE V v_reciprocal(D d, V x) {
#if HWY_TARGET == HWY_AVX3
  // 14 bits, and one step of Newton's: a division of 16 lanes costs more than all else here.
  if constexpr (hn::MaxLanes(D()) == 16) {
    const V guess = hn::ApproximateReciprocal(x);
    return hn::MulAdd(guess, hn::NegMulAdd(x, guess, hn::Set(d, 1.0f)), guess);
  }
#endif
  return hn::Div(hn::Set(d, 1.0f), x);
}

/// 1 + e^-x within 2 ULP; infinite for x < -88.4.
template <class D, class V>
HWY_INLINE V v_one_plus_exp_negated(D d, V x) {
  // From -89 the power of 2 has the bits of infinity; to 87 it is no subnormal number.
  x = hn::Max(hn::Set(d, -89.0f), hn::Min(hn::Set(d, 87.0f), x));
  V n, shifted;
  const V r = v_exp_reduce(d, hn::Neg(x), n, shifted);
  const V p = hn::MulAdd(v_expm1_polynomial(d, r), r, hn::Set(d, 1.0f));
  // The lowest nine bits of kExpMagic are 0.
  const hn::RebindToSigned<D> di;
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 127)));
  return hn::MulAdd(p, hn::BitCast(d, power), hn::Set(d, 1.0f));
}

/// x / (1 + e^-by), within 3 ULP of the result; 0 where that power is no longer finite.
template <class D, class V>
HWY_INLINE V v_over_one_plus_exp_negated(D d, V x, V by) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {
    // The reciprocal of what is clamped is the last one that is no subnormal number.
    const V least = hn::Set(d, -87.33f), one = hn::Set(d, 1.0f), magic = hn::Set(d, kExpMagic);
    const V a = hn::Max(least, hn::Min(hn::Set(d, 104.0f), by));
    const V n = hn::Sub(hn::NegMulAdd(a, hn::Set(d, 1.44269504088896341f), magic), magic);
    // v_exp_reduce and v_expm1_polynomial of -a, with the sign of r turned.
    V r = hn::MulAdd(n, hn::Set(d, 0.693145751953125f), a);
    r = hn::MulAdd(n, hn::Set(d, 1.428606765330187045e-06f), r);
    V p = hn::MulAdd(hn::Set(d, -0.001393368816934526f), r, hn::Set(d, 0.008363205008208752f));
    p = hn::MulAdd(p, r, hn::Set(d, -0.041666463017463684f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.16666576266288757f));
    p = hn::MulAdd(p, r, hn::Set(d, -0.5f));
    p = hn::NegMulAdd(hn::MulAdd(p, r, one), r, one);
    const V y = hn::Mul(x, v_reciprocal(d, hn::Add(one, V{_mm512_scalef_ps(p.raw, n.raw)})));
    return hn::IfThenZeroElse(hn::Lt(by, least), y);
  }
#endif
  return hn::Div(x, v_one_plus_exp_negated(d, by));
}

/// 1 / (1 + e^-x) within 3 ULP.
template <class D, class V>
HWY_INLINE V v_sigmoid(D d, V x) {
  return v_over_one_plus_exp_negated(d, hn::Set(d, 1.0f), x);
}

/// x / (1 + e^(-alpha x)) within 3 ULP where alpha is 1.
template <class D, class V>
HWY_INLINE V v_swish(D d, V x, V alpha) {
  return v_over_one_plus_exp_negated(d, x, hn::Mul(alpha, x));
}

/// e^x - 1 for x <= 0 (or NaN) within 3 ULP.
template <class D, class V>
HWY_INLINE V v_expm1_negative(D d, V x) {
  V n, shifted;
  const V one = hn::Set(d, 1.0f);
  const V r = v_exp_reduce(d, hn::Max(hn::Set(d, -20.0f), x), n, shifted);
  const V power = v_times_small_power(d, one, n, shifted);
  return hn::MulAdd(hn::Mul(v_expm1_polynomial(d, r), r), power, hn::Sub(power, one));
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
  far = hn::Sub(hn::Set(d, 1.0f), v_exp_negative(d, far));
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

/// tanh within 5 ULP (6 without fused products): x P(x^2) / Q(x^2), a minimax fit (2e-8) up to
/// where the result is 1.
template <class D, class V>
HWY_INLINE V v_tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V a = hn::Min(hn::Set(d, 9.02f), hn::Abs(x));  // NaN stays
  const V t = hn::Mul(a, a);
  V p = hn::MulAdd(hn::Set(d, 1.33190143e-08f), t, hn::Set(d, 2.05834476e-05f));
  V q = hn::MulAdd(hn::Set(d, 7.76200125e-07f), t, hn::Set(d, 3.28308815e-04f));
  p = hn::MulAdd(p, t, hn::Set(d, 3.49403126e-03f));
  q = hn::MulAdd(q, t, hn::Set(d, 2.58710645e-02f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.33797169e-01f));
  q = hn::MulAdd(q, t, hn::Set(d, 4.67130303e-01f));
  p = hn::MulAdd(p, t, one);
  q = hn::MulAdd(q, t, one);
  const V y = hn::Mul(hn::Mul(a, p), v_reciprocal(d, q));
  return hn::CopySign(hn::Min(one, y), x);
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

/// x (1 + erf(x / sqrt 2)) / 2 = x q or x (1 - q) with q = e^(-x^2 / 2) p(1 / (1 + 0.3 |x|)): one
/// minimax polynomial (of the scaled complement of erf, within 6e-8) for both signs and all sizes,
/// and no difference of nearly equal numbers where x is negative.
template <class D, class V>
HWY_INLINE V v_gelu(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Min(hn::Set(d, 20.0f), hn::Abs(x));  // beyond, q is 0
  const V u = v_reciprocal(d, hn::MulAdd(hn::Set(d, 0.3f), t, one));
  V p = hn::MulAdd(hn::Set(d, 3.83782908e-2f), u, hn::Set(d, -1.69166118e-1f));
  p = hn::MulAdd(p, u, hn::Set(d, 2.28660077e-1f));
  p = hn::MulAdd(p, u, hn::Set(d, -7.65064806e-2f));
  p = hn::MulAdd(p, u, hn::Set(d, 1.42535523e-1f));
  p = hn::MulAdd(p, u, hn::Set(d, 9.46835205e-2f));
  p = hn::MulAdd(p, u, hn::Set(d, 1.2192034e-1f));
  p = hn::MulAdd(p, u, hn::Set(d, 1.19487688e-1f));
  p = hn::MulAdd(p, u, hn::Set(d, 7.16887598e-6f));
  const V q = hn::Mul(p, v_exp_negative(d, hn::Mul(hn::Mul(t, hn::Set(d, -0.5f)), t)));
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), q, hn::Sub(one, q)));
}

/// x (1 + tanh(t)) / 2 = x / (1 + e^(-2t)): no difference of nearly equal numbers where t is
/// negative.
template <class D, class V>
HWY_INLINE V v_gelu_tanh(D d, V x) {
  constexpr float kTwice = 1.59576912160573f;  // 2 sqrt(2 / pi)
  const V factor = hn::MulAdd(hn::Mul(x, x), hn::Set(d, kTwice * 0.044715f), hn::Set(d, kTwice));
  return v_over_one_plus_exp_negated(d, x, hn::Mul(x, factor));
}

/// x tanh(log(1 + e^x)) = x w / (w + 2) with w = e^x (e^x + 2), within 6 ULP.
template <class D, class V>
HWY_INLINE V v_mish(D d, V x) {
  const V two = hn::Set(d, 2.0f);
  const V e = v_exp(d, hn::Min(hn::Set(d, 30.0f), x));  // beyond, the quotient is 1
  const V w = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(w, hn::Add(w, two)));
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
