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

#include "runtime/kernels/group-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// x * 2^n for a whole n from -150 to 128, with n + kExpMagic in `shifted`.
inline constexpr float kExpMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
template <class D, class V>
HWY_INLINE V v_times_power_of_2(D d, V x, V n, V shifted) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {
    (void)d, (void)shifted;
    return gn::TimesPowerOf2(x, n);
  } else
#endif
  {
    (void)n;
    const hn::RebindToSigned<D> di;
    // What kExpMagic leaves in the lowest nine bits is n, and half of it n / 2.
    const auto whole = gn::BitCast(di, shifted), half = gn::ShiftRight<1>(whole);
    const auto one = gn::BitCast(di, hn::Set(d, 1.0f));
    const auto power = [&](auto e)
                           HWY_ATTR { return gn::BitCast(d, gn::Add(gn::ShiftLeft<23>(e), one)); };
    return gn::Mul(gn::Mul(x, power(half)), power(gn::Sub(whole, half)));
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
    const auto bias = gn::Sub(hn::Set(di, 127), gn::BitCast(di, hn::Set(d, kExpMagic)));
    const auto e = gn::Max(hn::Zero(di), gn::Add(gn::BitCast(di, shifted), bias));
    return gn::Mul(x, gn::BitCast(d, gn::ShiftLeft<23>(e)));
  }
}

/// e^x - 1 for |x| <= log(2) / 2 is r * p(r): the minimax polynomial p.
template <class D, class V>
HWY_INLINE V v_expm1_polynomial(D d, V r) {
  V p = gn::MulAdd(hn::Set(d, 0.001393368816934526f), r, hn::Set(d, 0.008363205008208752f));
  p = gn::MulAdd(p, r, hn::Set(d, 0.041666463017463684f));
  p = gn::MulAdd(p, r, hn::Set(d, 0.16666576266288757f));
  p = gn::MulAdd(p, r, hn::Set(d, 0.5f));
  return gn::MulAdd(p, r, hn::Set(d, 1.0f));
}

/// x = n log(2) + r: gives r, and n as it is and with kExpMagic added.
template <class D, class V>
HWY_INLINE V v_exp_reduce(D d, V x, V& n, V& shifted) {
  const V magic = hn::Set(d, kExpMagic);
  shifted = gn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  n = gn::Sub(shifted, magic);
  const V r = gn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
  return gn::NegMulAdd(n, hn::Set(d, 1.428606765330187045e-06f), r);
}

/// e^x within 1 ULP for -104 <= x <= 89, NaN for NaN.
template <class D, class V>
HWY_INLINE V v_exp_inside(D d, V x) {
  V n, shifted;
  const V r = v_exp_reduce(d, x, n, shifted);
  return v_times_power_of_2(d, gn::MulAdd(v_expm1_polynomial(d, r), r, hn::Set(d, 1.0f)), n,
                            shifted);
}

// Min(limit, x) and Max(limit, x) in this order give x when it is NaN.

/// 2^n for n from -126 to 127, with `shifted` as v_exp_reduce gives it.
template <class D, class V>
HWY_INLINE V v_moderate_power(D d, V shifted) {
  // The lowest nine bits of kExpMagic are 0.
  const hn::RebindToSigned<D> di;
  const auto one = gn::BitCast(di, hn::Set(d, 1.0f));
  return gn::BitCast(d, gn::Add(gn::ShiftLeft<23>(gn::BitCast(di, shifted)), one));
}

/// e^x within 1 ULP for -87.33 <= x <= 88 (or NaN).
template <class D, class V>
HWY_INLINE V v_exp_moderate(D d, V x) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) return v_exp_inside(d, x);
#endif
  V n, shifted;
  const V r = v_exp_reduce(d, x, n, shifted);
  return gn::Mul(gn::MulAdd(v_expm1_polynomial(d, r), r, hn::Set(d, 1.0f)),
                 v_moderate_power(d, shifted));
}

/// Below this e^x is a subnormal number: to make one, or to compute with one, takes some processors
/// a hundred times as long.
inline constexpr float kExpNormal = -87.33f;

/// Whether any number of a vector, or of a group of them, is below `limit`.
template <class D, class V>
HWY_INLINE bool any_below(D d, const V& x, float limit) {
  if constexpr (kIsGroup<V>) {
    auto below = hn::Lt(part_of(x, 0), hn::Set(d, limit));
    for (int i = 1; i < kGroup; ++i)
      below = hn::Or(below, hn::Lt(part_of(x, i), hn::Set(d, limit)));
    return !hn::AllFalse(d, below);
  } else {
    return !hn::AllFalse(d, hn::Lt(x, hn::Set(d, limit)));
  }
}

/// The subnormal e^x, zero included, for x below kExpNormal: its bits are e^x / 2^-149 as a whole
/// number.
template <class D, class V>
HWY_INLINE V v_exp_subnormal(D d, V x) {
  V n, shifted;
  x = gn::Min(hn::Set(d, kExpNormal), gn::Max(hn::Set(d, -106.0f), x));
  const V r = v_exp_reduce(d, x, n, shifted);
  const V p = gn::MulAdd(v_expm1_polynomial(d, r), r, hn::Set(d, 1.0f));
  constexpr float kMore = 149;
  const V more = hn::Set(d, kMore);
  const V bits = v_times_small_power(d, p, V(gn::Add(n, more)), V(gn::Add(shifted, more)));
  return gn::BitCast(d, gn::NearestInt(bits));
}

/// e^x within 1 ULP.
template <class D, class V>
HWY_INLINE V v_exp(D d, V x) {
  const V least = hn::Set(d, kExpNormal);
  const V y = v_exp_inside(d, V(gn::Max(least, gn::Min(hn::Set(d, 89.0f), x))));
  if (HWY_LIKELY(!any_below(d, x, kExpNormal))) return y;
  return gn::IfThenElse(gn::Lt(x, least), v_exp_subnormal(d, x), y);
}

/// e^x within 1 ULP for x <= 0 (or NaN): no overflow to look after. Below kExpNormal, where results
/// are subnormal, it is 0.
template <class D, class V>
HWY_INLINE V v_exp_negative(D d, V x) {
  const V least = hn::Set(d, kExpNormal);
  const V y = v_exp_moderate(d, V(gn::Max(least, x)));
  return gn::IfThenZeroElse(gn::Lt(x, least), y);
}

/// e^x for x <= 0 (or NaN), 0 where it is below `least`, which is no less than e^-87: no denormal
/// numbers, which later products and sums are slow with, not even on the way.
template <class D, class V>
HWY_INLINE V v_exp_or_zero(D d, V x, hn::Vec<D> least) {
  const V e = v_exp_moderate(d, V(gn::Max(hn::Set(d, -87.0f), x)));
  return gn::IfThenZeroElse(gn::Lt(e, least), e);
}

/// 1 / x for finite x >= 1 (or NaN) within 1 ULP.
template <class D, class V>
HWY_INLINE V v_reciprocal(D d, V x) {
#if HWY_TARGET == HWY_AVX3
  // 14 bits, and one step of Newton's: a division of 16 lanes costs more than all else here.
  if constexpr (hn::MaxLanes(D()) == 16) {
    const V guess = gn::ApproximateReciprocal(x);
    return gn::MulAdd(guess, gn::NegMulAdd(x, guess, hn::Set(d, 1.0f)), guess);
  }
#endif
  return gn::Div(hn::Set(d, 1.0f), x);
}

/// x / y for finite y >= 1 (or NaN) within 2 ULP. `kDivides`: as divides_fast() says.
template <bool kDivides, class D, class V>
HWY_INLINE V v_quotient([[maybe_unused]] D d, V x, V y) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (!kDivides && hn::MaxLanes(D()) == 16) return gn::Mul(x, v_reciprocal(d, y));
#endif
  return gn::Div(x, y);
}

/// e^-a = p * 2^n: gives p, and n as it is and with kExpMagic added.
template <class D, class V>
HWY_INLINE V v_exp_negated_reduced(D d, V a, V& n, V& shifted) {
  // v_exp_reduce and v_expm1_polynomial of -a, with the sign of r turned.
  const V one = hn::Set(d, 1.0f), magic = hn::Set(d, kExpMagic);
  shifted = gn::NegMulAdd(a, hn::Set(d, 1.44269504088896341f), magic);
  n = gn::Sub(shifted, magic);
  V r = gn::MulAdd(n, hn::Set(d, 0.693145751953125f), a);
  r = gn::MulAdd(n, hn::Set(d, 1.428606765330187045e-06f), r);
  V p = gn::MulAdd(hn::Set(d, -0.001393368816934526f), r, hn::Set(d, 0.008363205008208752f));
  p = gn::MulAdd(p, r, hn::Set(d, -0.041666463017463684f));
  p = gn::MulAdd(p, r, hn::Set(d, 0.16666576266288757f));
  p = gn::MulAdd(p, r, hn::Set(d, -0.5f));
  return gn::NegMulAdd(gn::MulAdd(p, r, one), r, one);
}

/// 1 + e^-x within 2 ULP; infinite where its reciprocal would be a subnormal number.
template <class D, class V>
HWY_INLINE V v_one_plus_exp_negated(D d, V x) {
  // At -89 the power of 2 has the bits of infinity; to 87 it is no subnormal number.
  const V below = hn::Set(d, -89.0f);
  x = gn::IfThenElse(gn::Lt(x, V(hn::Set(d, kExpNormal))), below, gn::Min(hn::Set(d, 87.0f), x));
  V n, shifted;
  const V p = v_exp_negated_reduced(d, x, n, shifted);
  return gn::MulAdd(p, v_moderate_power(d, shifted), hn::Set(d, 1.0f));
}

/// x / (1 + e^-by), within 3 ULP of the result; 0 where that power is no longer finite.
template <bool kDivides = false, class D, class V>
HWY_INLINE V v_over_one_plus_exp_negated(D d, V x, V by) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {
    // No subnormal numbers, not even on the way: this would take ten times as long with them. The
    // reciprocal of what is clamped below is the last that is none; above, the power is, and 1
    // with it stays 1.
    const V least = hn::Set(d, kExpNormal), most = hn::Set(d, -kExpNormal), one = hn::Set(d, 1.0f);
    V n, shifted;
    const V p = v_exp_negated_reduced(d, V(gn::Max(least, gn::Min(most, by))), n, shifted);
    // Zen 5 scales by a power of 2 half as often as it adds or shifts.
    const V all = kDivides ? gn::MulAdd(p, v_moderate_power(d, shifted), one)
                           : gn::Add(one, V(gn::TimesPowerOf2(p, n)));
    const V y = v_quotient<kDivides>(d, x, all);
    return gn::IfThenZeroElse(gn::Lt(by, least), y);
  }
#endif
  return gn::Div(x, v_one_plus_exp_negated(d, by));
}

/// 1 / (1 + e^-x) within 3 ULP.
template <bool kDivides = false, class D, class V>
HWY_INLINE V v_sigmoid(D d, V x) {
  return v_over_one_plus_exp_negated<kDivides>(d, V(hn::Set(d, 1.0f)), x);
}

/// x / (1 + e^(-alpha x)) within 3 ULP where alpha is 1.
template <bool kDivides = false, class D, class V>
HWY_INLINE V v_swish(D d, V x, V alpha) {
  return v_over_one_plus_exp_negated<kDivides>(d, x, gn::Mul(alpha, x));
}

/// e^x - 1 for x <= 0 (or NaN) within 3 ULP.
template <class D, class V>
HWY_INLINE V v_expm1_negative(D d, V x) {
  V n, shifted;
  const V one = hn::Set(d, 1.0f);
  const V r = v_exp_reduce(d, gn::Max(hn::Set(d, -20.0f), x), n, shifted);
  const V power = v_times_small_power(d, one, n, shifted);
  return gn::MulAdd(gn::Mul(v_expm1_polynomial(d, r), r), power, gn::Sub(power, one));
}

/// Error function within 2 ULP: an odd polynomial near 0, 1 - e^p(|x|) beyond.
template <class D, class V>
HWY_INLINE V v_erf(D d, V x) {
  // From 4 on the result is 1, and the polynomial no longer good.
  const V t = gn::Min(hn::Set(d, 4.0f), gn::Abs(x)), s = gn::Mul(t, t);  // NaN stays
  V far = gn::MulAdd(hn::Set(d, -1.72853470e-5f), t, hn::Set(d, 3.83197126e-4f));
  const V mid = gn::MulAdd(hn::Set(d, -3.88396438e-3f), t, hn::Set(d, 2.42546219e-2f));
  far = gn::MulAdd(far, s, mid);
  far = gn::MulAdd(far, t, hn::Set(d, -1.06777877e-1f));
  far = gn::MulAdd(far, t, hn::Set(d, -6.34846687e-1f));
  far = gn::MulAdd(far, t, hn::Set(d, -1.28717512e-1f));
  far = gn::MulSub(far, t, t);
  // 1 - e^far, where far is above -18 and the power below 0.2: one constant for log(2) will do.
  const V one = hn::Set(d, 1.0f), magic = hn::Set(d, kExpMagic);
  const V shifted = gn::MulAdd(far, hn::Set(d, 1.44269504088896341f), magic);
  const V r = gn::NegMulAdd(gn::Sub(shifted, magic), hn::Set(d, 0.693147180559945309f), far);
  const V p = gn::MulAdd(v_expm1_polynomial(d, r), r, one);
  far = gn::NegMulAdd(p, v_moderate_power(d, shifted), one);
  far = gn::Or(far, gn::And(x, hn::Set(d, -0.0f)));  // it is not negative
  V near = gn::MulAdd(hn::Set(d, -5.96761703e-4f), s, hn::Set(d, 4.99119423e-3f));
  near = gn::MulAdd(near, s, hn::Set(d, -2.67681349e-2f));
  near = gn::MulAdd(near, s, hn::Set(d, 1.12819925e-1f));
  near = gn::MulAdd(near, s, hn::Set(d, -3.76125336e-1f));
  near = gn::MulAdd(near, s, hn::Set(d, 1.28379166e-1f));
  near = gn::MulAdd(near, x, x);
  return gn::IfThenElse(gn::Gt(t, hn::Set(d, 0.927734375f)), far, near);
}

/// tanh x = x P(x^2) / Q(x^2), a minimax fit (2e-8) up to where the result is 1: |x| P and Q.
template <class D, class V>
HWY_INLINE void v_tanh_fraction(D d, V x, V& numerator, V& denominator) {
  const V one = hn::Set(d, 1.0f);
  const V a = gn::Min(hn::Set(d, 9.02f), gn::Abs(x));  // NaN stays
  const V t = gn::Mul(a, a);
  V p = gn::MulAdd(hn::Set(d, 1.33190143e-08f), t, hn::Set(d, 2.05834476e-05f));
  V q = gn::MulAdd(hn::Set(d, 7.76200125e-07f), t, hn::Set(d, 3.28308815e-04f));
  p = gn::MulAdd(p, t, hn::Set(d, 3.49403126e-03f));
  q = gn::MulAdd(q, t, hn::Set(d, 2.58710645e-02f));
  p = gn::MulAdd(p, t, hn::Set(d, 1.33797169e-01f));
  q = gn::MulAdd(q, t, hn::Set(d, 4.67130303e-01f));
  numerator = gn::Mul(a, gn::MulAdd(p, t, one));
  denominator = gn::MulAdd(q, t, one);
}

/// tanh within 5 ULP (6 without fused products).
template <bool kDivides = false, class D, class V>
HWY_INLINE V v_tanh(D d, V x) {
  V p, q;
  v_tanh_fraction(d, x, p, q);
  const V y = v_quotient<kDivides>(d, p, q);
  return gn::CopySign(gn::Min(V(hn::Set(d, 1.0f)), y), x);
}

/// tanh(x) / (1 + e^-by), a gate's share of a candidate, within 8 ULP: by one division where these
/// are slow.
template <class D, class V>
HWY_INLINE V v_sigmoid_times_tanh(D d, V by, V x) {
  if constexpr (HWY_TARGET == HWY_AVX3) {
    return v_over_one_plus_exp_negated(d, v_tanh(d, x), by);
  } else {
    V p, q;
    v_tanh_fraction(d, x, p, q);
    const V share = gn::Div(gn::Min(p, q), gn::Mul(q, v_one_plus_exp_negated(d, by)));
    return gn::CopySign(share, x);
  }
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
  return hn::Add(max_of(x, hn::Zero(d)), v_log1p_unit(d, e));
}

/// x (1 + erf(x / sqrt 2)) / 2 = x q or x (1 - q) with q = e^(-x^2 / 2) p(1 / (1 + 0.3 |x|)): one
/// minimax polynomial (of the scaled complement of erf, within 6e-8) for both signs and all sizes,
/// and no difference of nearly equal numbers where x is negative.
template <class D, class V>
HWY_INLINE V v_gelu(D d, V x) {
  // Beyond, q is taken for 0: it would be a subnormal number, with which this and what comes next
  // would take a hundred times as long.
  const V one = hn::Set(d, 1.0f), most = hn::Set(d, 12.94f);
  const V t = gn::Min(most, gn::Abs(x));
  const V u = v_reciprocal(d, gn::MulAdd(hn::Set(d, 0.3f), t, one));
  V p = gn::MulAdd(hn::Set(d, 3.83782908e-2f), u, hn::Set(d, -1.69166118e-1f));
  p = gn::MulAdd(p, u, hn::Set(d, 2.28660077e-1f));
  p = gn::MulAdd(p, u, hn::Set(d, -7.65064806e-2f));
  p = gn::MulAdd(p, u, hn::Set(d, 1.42535523e-1f));
  p = gn::MulAdd(p, u, hn::Set(d, 9.46835205e-2f));
  p = gn::MulAdd(p, u, hn::Set(d, 1.2192034e-1f));
  p = gn::MulAdd(p, u, hn::Set(d, 1.19487688e-1f));
  p = gn::MulAdd(p, u, hn::Set(d, 7.16887598e-6f));
  const V power = v_exp_moderate(d, V(gn::Mul(gn::Mul(t, hn::Set(d, -0.5f)), t)));
  const V q = gn::IfThenZeroElse(gn::Ge(t, most), gn::Mul(p, power));
  return gn::Mul(x, gn::IfThenElse(gn::Lt(x, hn::Zero(d)), q, gn::Sub(one, q)));
}

/// x (1 + tanh(t)) / 2 = x / (1 + e^(-2t)): no difference of nearly equal numbers where t is
/// negative.
template <bool kDivides = false, class D, class V>
HWY_INLINE V v_gelu_tanh(D d, V x) {
  constexpr float kTwice = 1.59576912160573f;  // 2 sqrt(2 / pi)
  const V factor = gn::MulAdd(gn::Mul(x, x), hn::Set(d, kTwice * 0.044715f), hn::Set(d, kTwice));
  return v_over_one_plus_exp_negated<kDivides>(d, x, gn::Mul(x, factor));
}

/// x tanh(log(1 + e^x)) = x w / (w + 2) with w = e^x (e^x + 2), within 6 ULP.
template <class D, class V>
HWY_INLINE V v_mish(D d, V x) {
  const V two = hn::Set(d, 2.0f);
  // Beyond 30 the quotient is 1, below the least it is taken for 0.
  const V least = hn::Set(d, kExpNormal);
  const V moderate = v_exp_moderate(d, V(gn::Max(least, gn::Min(hn::Set(d, 30.0f), x))));
  const V e = gn::IfThenZeroElse(gn::Lt(x, least), moderate);
  const V w = gn::Mul(e, gn::Add(e, two));
  return gn::Mul(x, gn::Div(w, gn::Add(w, two)));
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
