// Plain loops over the types that networks rarely compute in, and casts between types, which the
// compiler turns into vectors for each instruction set.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/unary_typed.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/ivdep.h"
#include "runtime/kernels/elementwise/unary_typed.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/quant/nearest-inl.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#define EACH(name, R, ...)                                \
  template <typename T>                                   \
  void name(const void* from, void* to, int64_t n, int) { \
    const T* in = static_cast<const T*>(from);            \
    R* out = static_cast<R*>(to);                         \
    TOMBOLO_IVDEP for (int64_t i = 0; i < n; ++i) {       \
      const T x = in[i];                                  \
      out[i] = static_cast<R>(__VA_ARGS__);               \
    }                                                     \
  }
template <typename T>
using Bits = typename std::conditional_t<std::is_integral_v<T>,
                                         std::make_unsigned<std::common_type_t<T, int32_t>>,
                                         std::type_identity<T>>::type;
EACH(abs_any, T, x < 0 ? -static_cast<Bits<T>>(x) : static_cast<Bits<T>>(x))
EACH(neg_any, T, -static_cast<Bits<T>>(x))
EACH(relu_any, T, x < 0 ? T{0} : x)
EACH(sign_any, T, (x > 0) - (x < 0))
EACH(same_any, T, x)
EACH(not_zero_any, T, x != 0)
EACH(not_any, T, ~x)
EACH(sqrt_any, T, std::sqrt(x))
EACH(floor_any, T, std::floor(x))
EACH(ceil_any, T, std::ceil(x))
EACH(round_any, T, std::nearbyint(x))
EACH(logical_not_any, uint8_t, x == 0)
EACH(is_nan_any, uint8_t, x != x)

template <typename T>
void is_inf_any(const void* from, void* to, int64_t n, int flags) {
  const T* in = static_cast<const T*>(from);
  uint8_t* out = static_cast<uint8_t*>(to);
  // A bound that nothing passes stands for a side that does not count.
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T low = (flags & 1) != 0 ? -kInfinity : std::numeric_limits<T>::quiet_NaN();
  const T high = (flags & 2) != 0 ? kInfinity : std::numeric_limits<T>::quiet_NaN();
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>((in[i] == low) | (in[i] == high));
}

// Floats of 16 bits, by their bits: kInfinity has all of the exponent's.
template <uint16_t kInfinity>
void is_nan_half(const void* from, void* to, int64_t n, int) {
  const auto* in = static_cast<const uint16_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  TOMBOLO_IVDEP for (int64_t i = 0; i < n; ++i) out[i] = (in[i] & 0x7FFF) > kInfinity;
}
template <uint16_t kInfinity>
void is_inf_half(const void* from, void* to, int64_t n, int flags) {
  const auto* in = static_cast<const uint16_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  // Where a side does not count, the other one stands for it.
  const uint16_t above = (flags & 2) != 0 ? kInfinity : 0x8000 | kInfinity;
  const uint16_t below = (flags & 1) != 0 ? 0x8000 | kInfinity : kInfinity;
  const uint8_t any = flags != 0 ? 1 : 0;
  TOMBOLO_IVDEP for (int64_t i = 0; i < n; ++i) {
    const uint16_t x = in[i];
    out[i] = static_cast<uint8_t>((x == above) | (x == below)) & any;
  }
}
/// NaN keeps its sign and loses the rest, as by a conversion.
template <uint16_t kInfinity>
void sign_half(const void* from, void* to, int64_t n, int) {
  const auto* in = static_cast<const uint16_t*>(from);
  auto* out = static_cast<uint16_t*>(to);
  constexpr uint16_t kQuiet = kInfinity | (kInfinity & -kInfinity) >> 1;
  constexpr uint16_t kOne = kInfinity & kInfinity >> 1;
  TOMBOLO_IVDEP for (int64_t i = 0; i < n; ++i) {
    const uint16_t x = in[i], size = x & 0x7FFF, sign = x & 0x8000;
    const uint16_t number = size > kInfinity ? kQuiet : kOne;
    const uint16_t signed_number = number | sign;
    out[i] = size == 0 ? uint16_t{0} : signed_number;
  }
}

template <typename T>
void clip_any(const void* from, void* to, int64_t n, const void* least, const void* most) {
  using Limits = std::numeric_limits<T>;
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const T low = least != nullptr       ? *static_cast<const T*>(least)
                : Limits::has_infinity ? -Limits::infinity()
                                       : Limits::lowest();
  const T high = most != nullptr        ? *static_cast<const T*>(most)
                 : Limits::has_infinity ? Limits::infinity()
                                        : Limits::max();
  TOMBOLO_IVDEP for (int64_t i = 0; i < n; ++i) {
    const T x = in[i] < low ? low : in[i];
    out[i] = x > high ? high : x;
  }
}

/// `fast` where lo <= x <= hi holds in all lanes.
template <typename Fast>
HWY_INLINE void guarded_f64(const void* from, void* to, int64_t n, double lo, double hi,
                            Fast&& fast, double (*exact)(double)) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const double* in = static_cast<const double*>(from);
  double* out = static_cast<double*>(to);
  const auto low = hn::Set(d, lo), high = hn::Set(d, hi);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const auto x = left >= lanes ? hn::LoadU(d, in + i)
                                 : hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(left)),
                                                  load_n(d, in + i, left), hn::Set(d, 1.0));
    if (HWY_LIKELY(hn::AllTrue(d, hn::And(hn::Ge(x, low), hn::Le(x, high))))) {
      store_n(fast(d, x), d, out + i, left);
    } else {
      for (int64_t j = i; j < std::min(n, i + lanes); ++j) out[j] = exact(in[j]);
    }
  }
}
/// e^x = power * (1 + what it gives) for |x| <= 700.
template <class D, class V>
HWY_INLINE V exp_reduced_f64(D d, V x, V& power) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.4426950408889634), hn::Set(d, kMagic));
  const V n = hn::Sub(shifted, hn::Set(d, kMagic));
  // The first product and difference are exact; what r is rounded by is added at the end.
  const V low = hn::Set(d, 7.440617110012397e-11);
  const V first = hn::NegMulAdd(n, hn::Set(d, 0.6931471804855391), x);
  const V r = hn::NegMulAdd(n, low, first), rounded = hn::NegMulAdd(n, low, hn::Sub(first, r));
  // e^r = 1 + r + r^2 p(r), by Chebyshev's nodes, within 2.4e-17.
  constexpr double kTerms[] = {0.0001984126987482063, 0.001388888893251478, 0.008333333333326136,
                               0.041666666666573066,  0.1666666666666667,   0.5000000000000006};
  V p = hn::MulAdd(r, hn::Set(d, 2.5105217004720745e-08), hn::Set(d, 2.7626371065696354e-07));
  p = hn::MulAdd(p, r, hn::Set(d, 2.7557255400206422e-06));
  p = hn::MulAdd(p, r, hn::Set(d, 2.480150431378554e-05));
  for (const double term : kTerms) p = hn::MulAdd(p, r, hn::Set(d, term));
  const hn::RebindToSigned<D> di;
  power = hn::BitCast(
      d, hn::Add(hn::ShiftLeft<52>(hn::BitCast(di, shifted)), hn::BitCast(di, hn::Set(d, 1.0))));
  return hn::Add(hn::MulAdd(hn::Mul(r, r), p, rounded), r);
}
/// e^x for |x| <= 700, within 1 ULP; e^x - 1 for 0 <= x <= 700, within 2.
template <class D, class V>
HWY_INLINE V v_exp_f64(D d, V x) {
  V power;
  const V more = exp_reduced_f64(d, x, power);
  return hn::MulAdd(power, more, power);
}
template <class D, class V>
HWY_INLINE V v_expm1_f64(D d, V x) {
  V power;
  const V more = exp_reduced_f64(d, x, power);
  return hn::MulAdd(power, more, hn::Sub(power, hn::Set(d, 1.0)));
}

void exp_f64(const void* from, void* to, int64_t n, int) {
  guarded_f64(
      from, to, n, -700, 700, [](auto d, auto x) HWY_ATTR { return v_exp_f64(d, x); },
      [](double x) { return std::exp(x); });
}
void log_f64(const void* from, void* to, int64_t n, int) {
  guarded_f64(
      from, to, n, 1e-300, 1e300, [](auto d, auto x) HWY_ATTR { return hn::Log(d, x); },
      [](double x) { return std::log(x); });
}

EACH(reciprocal_any, T, T{1} / x)

void sign_f64(const void* from, void* to, int64_t n, int) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const double* in = static_cast<const double*>(from);
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.0);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto x = load_n(d, in + i, n - i);
    const auto above = hn::IfThenElseZero(hn::Gt(x, zero), one);
    const auto sign = hn::Sub(above, hn::IfThenElseZero(hn::Lt(x, zero), one));
    store_n(hn::IfThenElse(hn::IsNaN(x), x, sign), d, static_cast<double*>(to) + i, n - i);
  }
}

/// a / b within 1 ULP, for b from 1 to 1e300.
template <class D, class V>
HWY_INLINE V ratio_f64(D d, V a, V b) {
#if HWY_TARGET == HWY_AVX3
  // 14 bits, two steps of Newton's and one that mends the result: a division of eight lanes takes
  // as long as half of the function that needs it.
  if constexpr (hn::MaxLanes(D()) == 8) {
    const V one = hn::Set(d, 1.0);
    V r{_mm512_rcp14_pd(b.raw)};
    r = hn::MulAdd(r, hn::NegMulAdd(b, r, one), r);
    r = hn::MulAdd(r, hn::NegMulAdd(b, r, one), r);
    const V quotient = hn::Mul(a, r);
    return hn::MulAdd(r, hn::NegMulAdd(b, quotient, a), quotient);
  }
#endif
  (void)d;
  return hn::Div(a, b);
}

void tanh_f64(const void* from, void* to, int64_t n, int) {
  guarded_f64(
      from, to, n, -1e300, 1e300,
      [](auto d, auto x) HWY_ATTR {
        // From 20 on the result is 1.
        const auto two = hn::Set(d, 2.0), most = hn::Set(d, 20.0);
        const auto e = v_expm1_f64(d, hn::Mul(two, min_of(most, hn::Abs(x))));
        return hn::CopySign(ratio_f64(d, e, hn::Add(e, two)), x);
      },
      [](double x) { return std::tanh(x); });
}
void sigmoid_f64(const void* from, void* to, int64_t n, int) {
  guarded_f64(
      from, to, n, -690, 690,
      [](auto d, auto x) HWY_ATTR {
        const auto one = hn::Set(d, 1.0);
        return ratio_f64(d, one, hn::Add(one, v_exp_f64(d, hn::Neg(x))));
      },
      [](double x) { return 1 / (1 + std::exp(-x)); });
}
/// Beyond these limits the reduction to [-pi, pi] loses digits.
constexpr double kMostTurns = 10000;
void sin_f64(const void* from, void* to, int64_t n, int) {
  guarded_f64(
      from, to, n, -kMostTurns, kMostTurns, [](auto d, auto x) HWY_ATTR { return hn::Sin(d, x); },
      [](double x) { return std::sin(x); });
}
void cos_f64(const void* from, void* to, int64_t n, int) {
  guarded_f64(
      from, to, n, -kMostTurns, kMostTurns, [](auto d, auto x) HWY_ATTR { return hn::Cos(d, x); },
      [](double x) { return std::cos(x); });
}

void to_odd(const double* HWY_RESTRICT x, float* HWY_RESTRICT y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto near = static_cast<float>(x[i]);
    const double back = static_cast<double>(near);
    const auto bits = std::bit_cast<uint32_t>(near);
    const uint32_t above = std::fabs(back) > std::fabs(x[i]), lost = back != x[i];
    y[i] = std::bit_cast<float>((bits - above) | lost);
  }
}

struct Boolean {};

/// Truncated towards zero; out of range to the nearest end, NaN to zero: without a branch, so that
/// a vector unit can do it.
template <typename To, typename From>
HWY_INLINE To to_integer_of(From x) {
  constexpr To kLow = std::numeric_limits<To>::lowest(), kHigh = std::numeric_limits<To>::max();
  x = x != x ? From{0} : x;
  if constexpr (sizeof(To) <= 2) {
    x = x < static_cast<From>(kLow) ? static_cast<From>(kLow) : x;
    x = x > static_cast<From>(kHigh) ? static_cast<From>(kHigh) : x;
    return static_cast<To>(static_cast<int32_t>(x));
  } else if constexpr (std::is_unsigned_v<To>) {
    constexpr From kEnd = 2 * static_cast<From>(uint64_t{1} << (8 * sizeof(To) - 1));
    constexpr From kLast = kEnd - kEnd * std::numeric_limits<From>::epsilon() / 2;
    From inside = x < From{0} ? From{0} : x;
    inside = inside > kLast ? kLast : inside;
    const To whole = static_cast<To>(inside);
    return x >= kEnd ? kHigh : whole;
  } else {
    // The least power of two that is too large, and the greatest number below it.
    constexpr From kEnd = static_cast<From>(uint64_t{1} << (8 * sizeof(To) - 1));
    constexpr From kLast = kEnd - kEnd * std::numeric_limits<From>::epsilon() / 2;
    From inside = x < -kEnd ? -kEnd : x;
    inside = inside > kLast ? kLast : inside;
    const To whole = static_cast<To>(inside);
    return x >= kEnd ? kHigh : whole;
  }
}

/// The same for floats and integers of up to 32 bits, in vectors.
template <typename To>
void truncate_floats(const float* x, To* y, int64_t n) {
  const hn::ScalableTag<float> f;
  const hn::RebindToSigned<decltype(f)> d;
  const hn::Rebind<To, decltype(f)> part;
  using V = hn::Vec<decltype(f)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto whole = [&](V v) HWY_ATTR {
    const auto number = hn::Eq(v, v);
    if constexpr (sizeof(To) == 4) {
      const auto beyond = hn::RebindMask(d, hn::Ge(v, hn::Set(f, 2147483648.0f)));
      const auto most = hn::Set(d, std::numeric_limits<int32_t>::max());
      return hn::IfThenElse(beyond, most, truncated(hn::IfThenElseZero(number, v)));
    } else {
      // What is too small gives the least integer of 32 bits, and then of fewer.
      return truncated(hn::IfThenElseZero(number, min_of(v, hn::Set(f, 65535.0f))));
    }
  };
  int64_t i = 0;
  if constexpr (sizeof(To) == 1) {
    const hn::ScalableTag<To> bytes;
    const auto at = [&](int64_t j) HWY_ATTR { return whole(hn::LoadU(f, x + i + j * lanes)); };
    for (; i + 4 * lanes <= n; i += 4 * lanes)
      hn::StoreU(join_bytes(bytes, at(0), at(1), at(2), at(3), [](auto v) HWY_ATTR { return v; }),
                 bytes, y + i);
  }
  for (; i < n; i += lanes) {
    const auto v = whole(load_n(f, x + i, n - i));
    if constexpr (sizeof(To) == 4)
      store_n(v, d, y + i, n - i);
    else
      store_n(hn::DemoteTo(part, v), part, y + i, n - i);
  }
}

/// The same for unsigned integers of 32 bits: the upper half of them by what it is beyond the
/// lower.
void truncate_to_u32(const float* x, uint32_t* y, int64_t n) {
  const hn::ScalableTag<float> f;
  const hn::RebindToSigned<decltype(f)> d;
  const hn::RebindToUnsigned<decltype(f)> u;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto half = hn::Set(f, 2147483648.0f), end = hn::Set(f, 4294967296.0f);
  const auto top = hn::Set(d, std::numeric_limits<int32_t>::min()), all = hn::Set(d, -1);
  const auto whole = [&](hn::Vec<decltype(f)> v) HWY_ATTR {
    const auto upper = hn::Ge(v, half);
    const auto rest =
        hn::IfThenElseZero(hn::Gt(v, hn::Zero(f)), hn::Sub(v, hn::IfThenElseZero(upper, half)));
    const auto bits = hn::Or(truncated(rest), hn::IfThenElseZero(hn::RebindMask(d, upper), top));
    return hn::BitCast(u, hn::IfThenElse(hn::RebindMask(d, hn::Ge(v, end)), all, bits));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(whole(hn::LoadU(f, x + i)), u, y + i);
  if (i < n) store_n(whole(load_n(f, x + i, n - i)), u, y + i, n - i);
}

/// The same for doubles.
template <typename To>
void truncate_doubles(const double* x, To* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, decltype(d)> whole;
  const hn::Rebind<To, decltype(d)> part;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Integers of 32 bits are the nearest that there are, and so are those that they become.
  const auto integer = [&](hn::Vec<decltype(d)> v) HWY_ATTR {
    return hn::DemoteTo(whole, hn::IfThenElseZero(hn::Eq(v, v), v));
  };
  int64_t i = 0;
  // Whole vectors of integers of 32 bits, and of fewer.
  const hn::ScalableTag<int32_t> words;
  const auto two = [&](int64_t at) HWY_ATTR {
    return hn::Combine(words, integer(hn::LoadU(d, x + at + lanes)), integer(hn::LoadU(d, x + at)));
  };
  if constexpr (sizeof(To) == 1) {
    const hn::ScalableTag<To> bytes;
    for (; i + 8 * lanes <= n; i += 8 * lanes)
      hn::StoreU(join_bytes(bytes, two(i), two(i + 2 * lanes), two(i + 4 * lanes),
                            two(i + 6 * lanes), [](auto v) HWY_ATTR { return v; }),
                 bytes, y + i);
  }
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto left = two(i), right = two(i + 2 * lanes);
    if constexpr (sizeof(To) == 4) {
      hn::StoreU(left, words, y + i);
      hn::StoreU(right, words, y + i + 2 * lanes);
    } else {
      const hn::Rebind<To, decltype(words)> less;
      hn::StoreU(hn::DemoteTo(less, left), less, y + i);
      hn::StoreU(hn::DemoteTo(less, right), less, y + i + 2 * lanes);
    }
  }
  for (; i < n; i += lanes) {
    const auto last = integer(load_n(d, x + i, n - i));
    if constexpr (sizeof(To) == 4)
      store_n(last, whole, y + i, n - i);
    else
      store_n(hn::DemoteTo(part, last), part, y + i, n - i);
  }
}

#if HWY_TARGET == HWY_AVX2
// AVX2 converts to and from integers of 64 bits one by one, AVX-512 in vectors.

/// Four floats that are numbers, of any size: their 24 bits are shifted to where they belong.
HWY_INLINE hn::Vec<hn::ScalableTag<int64_t>> whole_of(hn::Vec<hn::Half<hn::ScalableTag<float>>> v) {
  const hn::ScalableTag<int64_t> d;
  const hn::RebindToUnsigned<decltype(d)> u;
  const hn::Half<hn::ScalableTag<uint32_t>> half;
  const auto bits = hn::PromoteTo(u, hn::BitCast(half, v));
  const auto digits = hn::Or(hn::And(bits, hn::Set(u, 0x7FFFFF)), hn::Set(u, 0x800000));
  const auto exponent = hn::And(hn::ShiftRight<23>(bits), hn::Set(u, 0xFF)), at = hn::Set(u, 150);
  // Shifts by 64 and more, also by what is below 0, give 0.
  const auto up = _mm256_sllv_epi64(digits.raw, hn::Sub(exponent, at).raw);
  const auto down = _mm256_srlv_epi64(digits.raw, hn::Sub(at, exponent).raw);
  const hn::Vec<decltype(d)> size{_mm256_or_si256(up, down)};
  const auto sign =
      hn::PromoteTo(d, hn::BroadcastSignBit(hn::BitCast(hn::Half<hn::ScalableTag<int32_t>>(), v)));
  const auto most = hn::Sub(hn::Set(d, std::numeric_limits<int64_t>::max()), sign);
  const auto beyond = hn::Gt(hn::BitCast(d, exponent), hn::Set(d, 127 + 62));
  return hn::Sub(hn::Xor(hn::IfThenElse(beyond, most, size), sign), sign);
}

/// Two vectors of floats at a time; the first that is not converted.
HWY_INLINE int64_t floats_to_long(const float* x, int64_t* y, int64_t n) {
  const hn::ScalableTag<float> f;
  const hn::ScalableTag<int64_t> d;
  const hn::Half<decltype(f)> half;
  const hn::Half<hn::ScalableTag<int32_t>> w;
  constexpr int64_t kLanes = hn::MaxLanes(f);
  const auto limit = hn::Set(f, 2147483648.0f);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const auto a = hn::LoadU(f, x + i), b = hn::LoadU(f, x + i + kLanes);
    if (HWY_LIKELY(hn::AllTrue(f, hn::And(hn::Lt(hn::Abs(a), limit), hn::Lt(hn::Abs(b), limit))))) {
      const auto store = [&](int64_t at, auto whole) HWY_ATTR {
        hn::StoreU(hn::PromoteTo(d, hn::LowerHalf(w, whole)), d, y + at);
        hn::StoreU(hn::PromoteTo(d, hn::UpperHalf(w, whole)), d, y + at + kLanes / 2);
      };
      store(i, truncated(a));
      store(i + kLanes, truncated(b));
      continue;
    }
    for (int64_t j = i; j < i + 2 * kLanes; j += kLanes / 2) {
      const auto v = hn::LoadU(half, x + j);
      hn::StoreU(whole_of(hn::IfThenElseZero(hn::Eq(v, v), v)), d, y + j);
    }
  }
  return i;
}

/// Where the upper half of a number only repeats its sign, the lower half is all of it.
HWY_INLINE int64_t long_to_floats(const int64_t* x, float* y, int64_t n) {
  const hn::ScalableTag<float> f;
  const hn::ScalableTag<int32_t> d;
  constexpr int64_t kLanes = hn::MaxLanes(f);
  const auto load = [&](int64_t at)
                        HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const int32_t*>(x + at)); };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const auto a = load(i), b = load(i + kLanes / 2), c = load(i + kLanes),
               e = load(i + kLanes + kLanes / 2);
    const auto low = hn::ConcatEven(d, b, a), low1 = hn::ConcatEven(d, e, c);
    const auto same = hn::Eq(hn::ConcatOdd(d, b, a), hn::BroadcastSignBit(low));
    const auto same1 = hn::Eq(hn::ConcatOdd(d, e, c), hn::BroadcastSignBit(low1));
    if (HWY_LIKELY(hn::AllTrue(d, hn::And(same, same1)))) {
      hn::StoreU(hn::ConvertTo(f, low), f, y + i);
      hn::StoreU(hn::ConvertTo(f, low1), f, y + i + kLanes);
      continue;
    }
    for (int64_t j = i; j < i + 2 * kLanes; ++j) y[j] = static_cast<float>(x[j]);
  }
  return i;
}
#endif

#if HWY_TARGET != HWY_AVX3
/// Doubles below 2^51 to integers of 64 bits, which AVX-512 alone converts in vectors; the first
/// that is not converted.
HWY_INLINE int64_t doubles_to_long(const double* x, int64_t* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, 6755399441055744.0), limit = hn::Set(d, 2251799813685248.0);
  const auto shift_bits = hn::BitCast(di, shift);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    const auto small = hn::And(hn::Lt(hn::Abs(a), limit), hn::Lt(hn::Abs(b), limit));
    if (HWY_LIKELY(hn::AllTrue(d, small))) {
      const auto whole = [&](auto v) HWY_ATTR {
        return hn::Sub(hn::BitCast(di, hn::Add(hn::Trunc(v), shift)), shift_bits);
      };
      hn::StoreU(whole(a), di, y + i);
      hn::StoreU(whole(b), di, y + i + lanes);
      continue;
    }
    for (int64_t j = i; j < i + 2 * lanes; ++j) y[j] = to_integer_of<int64_t>(x[j]);
  }
  return i;
}
#endif

template <typename To, typename From>
void convert_all(const void* from, void* to, int64_t n) {
  using In = std::conditional_t<std::is_same_v<From, Boolean>, uint8_t, From>;
  using Out = std::conditional_t<std::is_same_v<To, Boolean>, uint8_t, To>;
  const In* HWY_RESTRICT x = static_cast<const In*>(from);
  Out* HWY_RESTRICT y = static_cast<Out*>(to);
  constexpr bool kShort = std::is_integral_v<To> && sizeof(Out) <= 4 &&
                          !std::is_same_v<To, uint32_t>;  // what signed 32 bits hold
  if constexpr (std::is_same_v<From, float> && kShort) return truncate_floats(x, y, n);
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, uint32_t>)
    return truncate_to_u32(x, y, n);
  if constexpr (std::is_same_v<From, double> && kShort) return truncate_doubles(x, y, n);
  int64_t i = 0;
#if HWY_TARGET != HWY_AVX3
  if constexpr (std::is_same_v<From, double> && std::is_same_v<To, int64_t>)
    i = doubles_to_long(x, y, n);
#endif
#if HWY_TARGET == HWY_AVX2
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, int64_t>)
    i = floats_to_long(x, y, n);
  if constexpr (std::is_same_v<From, int64_t> && std::is_same_v<To, float>)
    i = long_to_floats(x, y, n);
#endif
  for (; i < n; ++i) {
    if constexpr (std::is_same_v<To, Boolean>)
      y[i] = x[i] != In{0};
    else if constexpr (std::is_same_v<From, Boolean>)
      y[i] = static_cast<Out>(x[i] != 0);
    else if constexpr (std::is_floating_point_v<In> && std::is_integral_v<Out>)
      y[i] = to_integer_of<Out>(x[i]);
    else
      y[i] = static_cast<Out>(x[i]);
  }
}

template <typename From>
ConvertFn* convert_from(DType to) {
  switch (to) {
    case DType::kFloat32:
      return convert_all<float, From>;
    case DType::kFloat64:
      return convert_all<double, From>;
    case DType::kInt64:
      return convert_all<int64_t, From>;
    case DType::kInt32:
      return convert_all<int32_t, From>;
    case DType::kInt16:
      return convert_all<int16_t, From>;
    case DType::kInt8:
      return convert_all<int8_t, From>;
    case DType::kUInt16:
      return convert_all<uint16_t, From>;
    case DType::kUInt8:
      return convert_all<uint8_t, From>;
    case DType::kUInt32:
      return convert_all<uint32_t, From>;
    case DType::kUInt64:
      return convert_all<uint64_t, From>;
    case DType::kBool:
      return convert_all<Boolean, From>;
    default:
      return nullptr;
  }
}

ConvertFn* convert_of(DType from, DType to) {
  switch (from) {
    case DType::kFloat32:
      return convert_from<float>(to);
    case DType::kFloat64:
      return convert_from<double>(to);
    case DType::kInt64:
      return convert_from<int64_t>(to);
    case DType::kInt32:
      return convert_from<int32_t>(to);
    case DType::kInt16:
      return convert_from<int16_t>(to);
    case DType::kInt8:
      return convert_from<int8_t>(to);
    case DType::kUInt16:
      return convert_from<uint16_t>(to);
    case DType::kUInt8:
      return convert_from<uint8_t>(to);
    case DType::kUInt32:
      return convert_from<uint32_t>(to);
    case DType::kUInt64:
      return convert_from<uint64_t>(to);
    case DType::kBool:
      return convert_from<Boolean>(to);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

#define ROW(id, T, name) \
  if (dtype == DType::id) return TOMBOLO_TARGET(UnaryTypedFn, name<T>).get();
#define HALF(name)                                                                       \
  if (dtype == DType::kFloat16) return TOMBOLO_TARGET(UnaryTypedFn, name<0x7C00>).get(); \
  if (dtype == DType::kBFloat16) return TOMBOLO_TARGET(UnaryTypedFn, name<0x7F80>).get();
#define SIGNED(name)         \
  ROW(kInt8, int8_t, name)   \
  ROW(kInt16, int16_t, name) \
  ROW(kInt32, int32_t, name) \
  ROW(kInt64, int64_t, name)
#define UNSIGNED(name)         \
  ROW(kUInt8, uint8_t, name)   \
  ROW(kUInt16, uint16_t, name) \
  ROW(kUInt32, uint32_t, name) \
  ROW(kUInt64, uint64_t, name)

ClipFn* clip_fn(DType dtype) {
#define CLIP(id, T) \
  case DType::id:   \
    return TOMBOLO_TARGET(ClipFn, clip_any<T>).get();
  switch (dtype) {
    CLIP(kInt8, int8_t)
    CLIP(kInt16, int16_t)
    CLIP(kInt32, int32_t)
    CLIP(kInt64, int64_t)
    CLIP(kUInt8, uint8_t)
    CLIP(kUInt16, uint16_t)
    CLIP(kUInt32, uint32_t)
    CLIP(kUInt64, uint64_t)
    CLIP(kFloat64, double)
    default:
      return nullptr;
  }
#undef CLIP
}

UnaryTypedFn* unary_typed_fn(UnaryTyped op, DType dtype) {
  switch (op) {
    case UnaryTyped::kAbs:
      SIGNED(abs_any)
      UNSIGNED(same_any)
      break;
    case UnaryTyped::kNeg:
      SIGNED(neg_any)
      ROW(kFloat64, double, neg_any)
      break;
    case UnaryTyped::kSign:
      SIGNED(sign_any)
      UNSIGNED(not_zero_any)
      if (dtype == DType::kFloat64) return TOMBOLO_TARGET(UnaryTypedFn, sign_f64).get();
      HALF(sign_half)
      break;
    case UnaryTyped::kRelu:
      SIGNED(relu_any)
      ROW(kFloat64, double, relu_any)
      break;
    case UnaryTyped::kNot:
      SIGNED(not_any)
      UNSIGNED(not_any)
      break;
    case UnaryTyped::kLogicalNot:
      ROW(kBool, uint8_t, logical_not_any)
      return nullptr;
    case UnaryTyped::kSqrt:
      ROW(kFloat64, double, sqrt_any)
      return nullptr;
    case UnaryTyped::kFloor:
      ROW(kFloat64, double, floor_any)
      return nullptr;
    case UnaryTyped::kCeil:
      ROW(kFloat64, double, ceil_any)
      return nullptr;
    case UnaryTyped::kRound:
      ROW(kFloat64, double, round_any)
      return nullptr;
    case UnaryTyped::kExp:
      if (dtype == DType::kFloat64) return TOMBOLO_TARGET(UnaryTypedFn, exp_f64).get();
      break;
    case UnaryTyped::kLog:
      if (dtype == DType::kFloat64) return TOMBOLO_TARGET(UnaryTypedFn, log_f64).get();
      break;
    case UnaryTyped::kTanh:
      if (dtype == DType::kFloat64) return TOMBOLO_TARGET(UnaryTypedFn, tanh_f64).get();
      break;
    case UnaryTyped::kSigmoid:
      if (dtype == DType::kFloat64) return TOMBOLO_TARGET(UnaryTypedFn, sigmoid_f64).get();
      break;
    case UnaryTyped::kSin:
      if (dtype == DType::kFloat64) return TOMBOLO_TARGET(UnaryTypedFn, sin_f64).get();
      break;
    case UnaryTyped::kCos:
      if (dtype == DType::kFloat64) return TOMBOLO_TARGET(UnaryTypedFn, cos_f64).get();
      break;
    case UnaryTyped::kReciprocal:
      ROW(kFloat64, double, reciprocal_any)
      break;
    case UnaryTyped::kIsNan:
      ROW(kFloat32, float, is_nan_any)
      ROW(kFloat64, double, is_nan_any)
      HALF(is_nan_half)
      break;
    case UnaryTyped::kIsInf:
      ROW(kFloat32, float, is_inf_any)
      ROW(kFloat64, double, is_inf_any)
      HALF(is_inf_half)
      break;
  }
  return nullptr;
}
#undef ROW
#undef HALF
#undef SIGNED
#undef UNSIGNED

void f64_to_odd(const double* x, float* y, int64_t n) {
  TOMBOLO_TARGET(void(const double*, float*, int64_t), to_odd)(x, y, n);
}

ConvertFn* convert_fn(DType from, DType to) {
  return TOMBOLO_TARGET(ConvertFn * (DType, DType), convert_of)(from, to);
}

}  // namespace tombolo
#endif
