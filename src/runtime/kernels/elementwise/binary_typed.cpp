// Arithmetic and comparison of the types that networks rarely compute in: plain loops, one for each
// case of repetition, which the compiler turns into vectors for each instruction set.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/binary_typed.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/ivdep.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, typename R, typename Fn>
HWY_INLINE void each_pair(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y,
                          int64_t n, Fn&& fn) {
  // Outputs may lie where an input does: element by element that is no matter.
  const T* p = static_cast<const T*>(a);
  const T* q = static_cast<const T*>(b);
  R* out = static_cast<R*>(y);
  if (a_repeats) {
    const T u = *p;
    TOMBOLO_IVDEP
    for (int64_t i = 0; i < n; ++i) out[i] = fn(u, q[i]);
  } else if (b_repeats) {
    const T v = *q;
    TOMBOLO_IVDEP
    for (int64_t i = 0; i < n; ++i) out[i] = fn(p[i], v);
  } else {
    TOMBOLO_IVDEP
    for (int64_t i = 0; i < n; ++i) out[i] = fn(p[i], q[i]);
  }
}

#define PAIRS(name, ...)                                                              \
  template <typename T>                                                               \
  void name(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) {     \
    each_pair<T, T>(a, ar, b, br, y, n, [](T u, T v) HWY_ATTR -> T { __VA_ARGS__; }); \
  }
template <typename T>
using Wrapping = std::make_unsigned_t<std::common_type_t<T, int32_t>>;
PAIRS(add_any, return static_cast<T>(static_cast<Wrapping<T>>(u) + static_cast<Wrapping<T>>(v)))
PAIRS(sub_any, return static_cast<T>(static_cast<Wrapping<T>>(u) - static_cast<Wrapping<T>>(v)))
PAIRS(mul_any, return static_cast<T>(static_cast<Wrapping<T>>(u) * static_cast<Wrapping<T>>(v)))
// A NaN on either side stays.
PAIRS(max_any, return u != u ? u : v < u ? u : v)
PAIRS(min_any, return u != u ? u : v > u ? u : v)
PAIRS(and_any, return static_cast<T>(u & v))
PAIRS(or_any, return static_cast<T>(u | v))
PAIRS(xor_any, return static_cast<T>(u ^ v))
// A shift by the width or more leaves zeros, or the sign; a negative amount is a great one.
PAIRS(left_any, constexpr auto kBits = static_cast<std::make_unsigned_t<T>>(8 * sizeof(T));
      const auto by = static_cast<std::make_unsigned_t<T>>(v);
      return by < kBits ? static_cast<T>(static_cast<Wrapping<T>>(u) << by) : T{0})
PAIRS(right_any, constexpr auto kBits = static_cast<std::make_unsigned_t<T>>(8 * sizeof(T));
      const auto by = static_cast<std::make_unsigned_t<T>>(v);
      if constexpr (std::is_signed_v<T>) return static_cast<T>(u >> (by < kBits ? by : kBits - 1));
      else return by < kBits ? static_cast<T>(u >> by) : T{0})

enum class Rest { kQuotient, kFloored, kTruncated };
template <Rest kRest, typename T>
HWY_INLINE T finish(T u, T v, T quotient) {
  if constexpr (kRest == Rest::kQuotient) return quotient;
  const T rest = static_cast<T>(static_cast<Wrapping<T>>(u) -
                                static_cast<Wrapping<T>>(quotient) * static_cast<Wrapping<T>>(v));
  if constexpr (kRest == Rest::kFloored && std::is_signed_v<T>) {
    const bool apart = ((rest ^ v) < 0) & (rest != 0);
    return static_cast<T>(rest + (apart ? v : T{0}));
  }
  return rest;
}

/// Truncated quotients of integers below 2^52 are those of doubles (of floats, below 2^23): a
/// quotient that is no whole number differs from the next one by more than it is rounded.
template <Rest kRest, typename T>
HWY_INLINE T divide_fast(T u, T v) {
  using Quotient = std::conditional_t<sizeof(T) <= 2, float, double>;
  using Whole = std::conditional_t<sizeof(T) <= 2, int32_t, T>;
  const auto quotient = static_cast<Quotient>(u) / static_cast<Quotient>(v);
  return finish<kRest>(u, v, static_cast<T>(static_cast<Whole>(quotient)));
}
/// The same in vectors of doubles, for int32_t and for numbers of 64 bits whose magnitude is below
/// 2^51: added to 1.5 * 2^52 they are the low bits of a double.
template <Rest kRest, typename T>
void divide_doubles(const T* p, bool p_repeats, const T* q, bool q_repeats, T* out, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, 6755399441055744.0);
  const auto shift_bits = hn::BitCast(di, shift);
  const auto load = [&](const T* x, int64_t left) HWY_ATTR {
    const auto v = load_n(dt, x, left);
    if constexpr (sizeof(T) == 4)
      return hn::PromoteTo(d, v);
    else
      return hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(di, v), shift_bits)), shift);
  };
  const auto first = hn::Set(d, static_cast<double>(*p)),
             second = hn::Set(d, static_cast<double>(*q));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const auto u = p_repeats ? first : load(p + i, left);
    const auto v = q_repeats ? second : load(q + i, left);
    auto result = hn::Trunc(hn::Div(u, v));
    if constexpr (kRest != Rest::kQuotient) result = hn::NegMulAdd(result, v, u);
    if constexpr (kRest == Rest::kFloored && std::is_signed_v<T>)
      result = hn::Add(result, hn::IfThenElseZero(hn::Lt(hn::Mul(result, v), hn::Zero(d)), v));
    const auto whole = hn::Sub(hn::BitCast(di, hn::Add(result, shift)), shift_bits);
    if constexpr (sizeof(T) == 4) {
      const hn::RebindToUnsigned<decltype(dt)> du;
      const auto bits = hn::BitCast(hn::RebindToUnsigned<decltype(di)>(), whole);
      store_n(hn::BitCast(dt, hn::TruncateTo(du, bits)), dt, out + i, left);
    } else {
      store_n(hn::BitCast(dt, whole), dt, out + i, left);
    }
  }
}
/// Whether all magnitudes are: those of all together, bit by bit, tell.
template <typename T>
bool below_2_to_51(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bits = [&](hn::Vec<decltype(d)> v) HWY_ATTR {
    if constexpr (std::is_signed_v<T>) v = hn::Xor(v, hn::BroadcastSignBit(v));
    return hn::BitCast(du, v);
  };
  auto a = hn::Zero(du), b = hn::Zero(du);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Or(a, bits(hn::LoadU(d, x + i)));
    b = hn::Or(b, bits(hn::LoadU(d, x + i + lanes)));
  }
  for (; i < n; i += lanes) a = hn::Or(a, bits(load_n(d, x + i, n - i)));
  return hn::AllTrue(du, hn::Eq(hn::ShiftRight<51>(hn::Or(a, b)), hn::Zero(du)));
}
template <Rest kRest, typename T>
HWY_INLINE T divide_exact(T u, T v) {
  if (std::is_signed_v<T> && v == static_cast<T>(-1))
    return finish<kRest>(u, v, static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(u)));
  return finish<kRest>(u, v, static_cast<T>(u / v));
}

/// Truncated division by one number of at least 2 (or at most -2) as a product and a shift: the
/// method of Granlund and Montgomery, as in Hacker's Delight.
struct DivideByOne {
  int64_t divisor, factor;
  int shift;
  explicit DivideByOne(int64_t d) : divisor(d) {
    constexpr uint64_t kTop = uint64_t{1} << 63;
    const uint64_t size = d < 0 ? 0 - static_cast<uint64_t>(d) : static_cast<uint64_t>(d);
    const uint64_t most = kTop + (static_cast<uint64_t>(d) >> 63);
    const uint64_t limit = most - 1 - most % size;
    uint64_t q1 = kTop / limit, r1 = kTop % limit, q2 = kTop / size, r2 = kTop % size, delta = 0;
    int p = 63;
    do {
      ++p;
      q1 *= 2;
      r1 *= 2;
      if (r1 >= limit) {
        ++q1;
        r1 -= limit;
      }
      q2 *= 2;
      r2 *= 2;
      if (r2 >= size) {
        ++q2;
        r2 -= size;
      }
      delta = size - r2;
    } while (q1 < delta || (q1 == delta && r1 == 0));
    const uint64_t magic = q2 + 1;
    factor = static_cast<int64_t>(d < 0 ? 0 - magic : magic);
    shift = p - 64;
  }
  int64_t operator()(int64_t x) const {
    __extension__ using Wide = __int128;
    auto high = static_cast<uint64_t>((static_cast<Wide>(x) * factor) >> 64);
    if (divisor > 0 && factor < 0) high += static_cast<uint64_t>(x);
    if (divisor < 0 && factor > 0) high -= static_cast<uint64_t>(x);
    const int64_t quotient = static_cast<int64_t>(high) >> shift;
    return quotient + static_cast<int64_t>(static_cast<uint64_t>(quotient) >> 63);
  }
};

template <Rest kRest, typename T>
void divide_any(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) {
  const T* p = static_cast<const T*>(a);
  const T* q = static_cast<const T*>(b);
  T* out = static_cast<T*>(y);
  if constexpr (std::is_same_v<T, int32_t>) {
    divide_doubles<kRest>(p, ar, q, br, out, n);
  } else if constexpr (sizeof(T) < 8) {
    each_pair<T, T>(a, ar, b, br, y, n, [](T u, T v) HWY_ATTR { return divide_fast<kRest>(u, v); });
  } else {
    constexpr int64_t kBlock = 512;
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      const T *u = p + (ar ? 0 : i), *v = q + (br ? 0 : i);
      if (below_2_to_51(u, ar ? 1 : count) && below_2_to_51(v, br ? 1 : count)) {
        divide_doubles<kRest>(u, ar, v, br, out + i, count);
        continue;
      }
      if constexpr (std::is_same_v<T, int64_t>) {
        const T first = v[0];
        const bool one = br || std::all_of(v, v + count, [&](T z) { return z == first; });
        if (one && (first > 1 || first < -1)) {
          const DivideByOne divide(first);
          each_pair<T, T>(u, ar, v, br, out + i, count,
                          [&](T x, T z) HWY_ATTR { return finish<kRest>(x, z, divide(x)); });
          continue;
        }
      }
      each_pair<T, T>(u, ar, v, br, out + i, count,
                      [](T x, T z) HWY_ATTR { return divide_exact<kRest>(x, z); });
    }
  }
}
template <typename T>
void div_any(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) {
  divide_any<Rest::kQuotient, T>(a, ar, b, br, y, n);
}
template <typename T>
void mod_any(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) {
  divide_any<Rest::kFloored, T>(a, ar, b, br, y, n);
}
template <typename T>
void rest_any(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) {
  divide_any<Rest::kTruncated, T>(a, ar, b, br, y, n);
}

#define COMPARE_ANY(name, op)                                                              \
  template <typename T>                                                                    \
  void name(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) {          \
    each_pair<T, uint8_t>(a, ar, b, br, y, n,                                              \
                          [](T u, T v) HWY_ATTR { return static_cast<uint8_t>(u op v); }); \
  }
COMPARE_ANY(equal_any, ==)
COMPARE_ANY(less_any, <)
COMPARE_ANY(less_equal_any, <=)
COMPARE_ANY(greater_any, >)
COMPARE_ANY(greater_equal_any, >=)

/// Remainders of floats in double, where they are exact: quotients below 2^28 of finite numbers.
void fmod_f32(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* p = static_cast<const float*>(a);
  const float* q = static_cast<const float*>(b);
  float* out = static_cast<float*>(y);
  const auto most = hn::Set(d, 268435456.0), finite = hn::Set(d, 3.5e38);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const auto u = hn::PromoteTo(d, ar ? hn::Set(h, *p) : load_n(h, p + i, left));
    auto v = hn::PromoteTo(d, br ? hn::Set(h, *q) : load_n(h, q + i, left));
    if (left < lanes)
      v = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(left)), v, hn::Set(d, 1.0));
    const auto quotient = hn::Trunc(hn::Div(u, v));
    const auto good = hn::And(hn::Lt(hn::Abs(quotient), most), hn::Lt(hn::Abs(v), finite));
    if (HWY_LIKELY(hn::AllTrue(d, good))) {
      const auto rest = hn::CopySign(hn::NegMulAdd(quotient, v, u), u);
      store_n(hn::DemoteTo(h, rest), h, out + i, left);
    } else {
      for (int64_t j = i; j < std::min(n, i + lanes); ++j)
        out[j] = std::fmod(p[ar ? 0 : j], q[br ? 0 : j]);
    }
  }
}

/// Remainders of doubles, exact: the quotient, rounded, is too large by one at most, and what is
/// then left over is, like the remainder itself, a multiple of the divisor's last place.
void fmod_f64(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const double* p = static_cast<const double*>(a);
  const double* q = static_cast<const double*>(b);
  double* out = static_cast<double*>(y);
  const auto most = hn::Set(d, 9007199254740992.0), zero = hn::Zero(d);
  const auto finite = hn::Set(d, std::numeric_limits<double>::max());
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const auto u = ar ? hn::Set(d, *p) : load_n(d, p + i, left);
    auto v = hn::Abs(br ? hn::Set(d, *q) : load_n(d, q + i, left));
    if (left < lanes)
      v = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(left)), v, hn::Set(d, 1.0));
    const auto size = hn::Abs(u), quotient = hn::Trunc(hn::Div(size, v));
    const auto good = hn::And(hn::Lt(quotient, most), hn::Le(v, finite));
    // Without the products of HWY_NATIVE_FMA, which are not rounded, none would be exact.
    if (HWY_NATIVE_FMA && HWY_LIKELY(hn::AllTrue(d, good))) {
      auto rest = hn::NegMulAdd(quotient, v, size);
      rest = hn::Add(rest, hn::IfThenElseZero(hn::Lt(rest, zero), v));
      store_n(hn::CopySign(rest, u), d, out + i, left);
    } else {
      for (int64_t j = i; j < std::min(n, i + lanes); ++j)
        out[j] = std::fmod(p[ar ? 0 : j], q[br ? 0 : j]);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

#define INTEGERS(ROW, name)    \
  ROW(kInt8, int8_t, name)     \
  ROW(kUInt8, uint8_t, name)   \
  ROW(kInt16, int16_t, name)   \
  ROW(kUInt16, uint16_t, name) \
  ROW(kInt32, int32_t, name)   \
  ROW(kUInt32, uint32_t, name) \
  ROW(kInt64, int64_t, name)   \
  ROW(kUInt64, uint64_t, name)
#define TYPE_ROW(id, T, name) \
  if (dtype == DType::id) return TOMBOLO_TARGET(BinaryFn, name<T>).get();
#define NUMBERS(id, name)            \
  case Binary::id:                   \
    INTEGERS(TYPE_ROW, name)         \
    TYPE_ROW(kFloat64, double, name) \
    break;
#define WHOLE(id, name)      \
  case Binary::id:           \
    INTEGERS(TYPE_ROW, name) \
    break;

BinaryFn* typed_fn(Binary op, DType dtype) {
  switch (op) {
    WHOLE(kAdd, add_any)
    WHOLE(kSub, sub_any)
    WHOLE(kMul, mul_any)
    WHOLE(kDiv, div_any)
    WHOLE(kMod, mod_any)
    WHOLE(kFmod, rest_any)
    NUMBERS(kMax, max_any)
    NUMBERS(kMin, min_any)
    WHOLE(kBitAnd, and_any)
    WHOLE(kBitOr, or_any)
    WHOLE(kBitXor, xor_any)
    WHOLE(kShiftLeft, left_any)
    WHOLE(kShiftRight, right_any)
    default:
      break;
  }
  return nullptr;
}

BinaryFn* typed_compare_fn(Binary op, DType dtype) {
  if (op == Binary::kEqual && dtype == DType::kBool) dtype = DType::kUInt8;
  switch (op) {
    NUMBERS(kEqual, equal_any)
    NUMBERS(kLess, less_any)
    NUMBERS(kLessOrEqual, less_equal_any)
    NUMBERS(kGreater, greater_any)
    NUMBERS(kGreaterOrEqual, greater_equal_any)
    default:
      break;
  }
  return nullptr;
}
#undef TYPE_ROW
#undef INTEGERS
#undef NUMBERS
#undef WHOLE

BinaryFn* fmod_fn(DType dtype) {
  return dtype == DType::kFloat32   ? TOMBOLO_TARGET(BinaryFn, fmod_f32).get()
         : dtype == DType::kFloat64 ? TOMBOLO_TARGET(BinaryFn, fmod_f64).get()
                                    : nullptr;
}

}  // namespace tombolo
#endif
