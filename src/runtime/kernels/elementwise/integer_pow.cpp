#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/integer_pow.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/integer_pow.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V times_wrapping(D d, V a, V b) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    (void)d;
    return hn::Mul(a, b);
  } else {
#if HWY_TARGET == HWY_AVX3
    (void)d;
    return V{_mm512_mullo_epi64(a.raw, b.raw)};
#else
    const hn::Repartition<uint32_t, D> half;
    const auto al = hn::BitCast(half, a), bl = hn::BitCast(half, b);
    const auto ah = hn::BitCast(half, hn::ShiftRight<32>(a)),
               bh = hn::BitCast(half, hn::ShiftRight<32>(b));
    const V cross = hn::Add(hn::MulEven(ah, bl), hn::MulEven(al, bh));
    return hn::Add(hn::MulEven(al, bl), hn::ShiftLeft<32>(cross));
#endif
  }
}

template <typename T>
void power_any(const T* x, T* y, int64_t n, int64_t exponent) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (exponent == 0) {
    std::fill_n(y, n, T{1});
    return;
  }
  // Several vectors take each step together: products of 64 bits are long chains.
  constexpr int64_t kVectors = 4;
  HWY_ALIGN T last[kVectors * HWY_LANES(T)] = {};
  for (int64_t i = 0; i < n; i += kVectors * lanes) {
    const bool whole = i + kVectors * lanes <= n;
    if (!whole) std::copy(x + i, x + n, last);
    const T* from = whole ? x + i : last;
    hn::Vec<decltype(d)> base[kVectors], result[kVectors];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) base[v] = hn::LoadU(d, from + v * lanes);
    const auto square = [&]() HWY_ATTR {
#pragma GCC unroll 4
      for (auto& b : base) b = times_wrapping(d, b, b);
    };
    int64_t bits = exponent;
    for (; (bits & 1) == 0; bits >>= 1) square();
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) result[v] = base[v];
    while ((bits >>= 1) != 0) {
      square();
      if ((bits & 1) == 0) continue;
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) result[v] = times_wrapping(d, result[v], base[v]);
    }
    T* to = whole ? y + i : last;
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(result[v], d, to + v * lanes);
    if (!whole) std::copy(last, last + (n - i), y + i);
  }
}

/// By the bits of the exponents, the lowest first, until no exponent of some vectors has one left.
template <typename T>
void powers_any(const T* x, const T* exponents, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kVectors = 2;
  const auto one = hn::Set(d, 1), zero = hn::Zero(d);
  for (int64_t i = 0; i < n; i += kVectors * lanes) {
    hn::Vec<decltype(d)> base[kVectors], bits[kVectors], result[kVectors];
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t at = i + v * lanes;
      base[v] = load_n(d, x + std::min(at, n), n - at);
      bits[v] = load_n(d, exponents + std::min(at, n), n - at);
      result[v] = one;
    }
    while (!hn::AllTrue(d, hn::Eq(hn::Or(bits[0], bits[1]), zero)))
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v) {
        const auto odd = hn::Ne(hn::And(bits[v], one), zero);
        result[v] = hn::IfThenElse(odd, times_wrapping(d, result[v], base[v]), result[v]);
        base[v] = times_wrapping(d, base[v], base[v]);
        bits[v] = hn::ShiftRight<1>(bits[v]);
      }
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v)
      if (const int64_t at = i + v * lanes; at < n) store_n(result[v], d, y + at, n - at);
  }
}

void powers_whole(const double* x, const double* exponents, double* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0), zero = hn::Zero(d), half = hn::Set(d, 0.5);
  const auto exact = hn::Set(d, 9007199254740992.0), most = hn::Set(d, 1024.0);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const auto given = load_n(d, exponents + i, left);
    const auto whole =
        hn::And(hn::Eq(hn::Trunc(given), given), hn::And(hn::Ge(given, zero), hn::Le(given, most)));
    auto base = load_n(d, x + i, left), result = one, bits = hn::IfThenElseZero(whole, given);
    while (!hn::AllTrue(d, hn::Eq(bits, zero))) {
      const auto halved = hn::Trunc(hn::Mul(bits, half));
      const auto odd = hn::Ne(hn::Add(halved, halved), bits);
      result = hn::IfThenElse(odd, hn::Mul(result, base), result);
      base = hn::Mul(base, base);
      bits = halved;
    }
    // Parts of a product of whole numbers are no greater than it: all were exact if it is small.
    const auto good = hn::And(whole, hn::Lt(hn::Abs(result), exact));
    if (HWY_LIKELY(hn::AllTrue(d, good))) {
      store_n(result, d, y + i, left);
      continue;
    }
    HWY_ALIGN double results[HWY_LANES(double)];
    HWY_ALIGN int64_t is_good[HWY_LANES(double)];
    hn::Store(result, d, results);
    hn::Store(hn::VecFromMask(di, hn::RebindMask(di, good)), di, is_good);
    for (int64_t j = 0; j < std::min(left, lanes); ++j)
      y[i + j] = is_good[j] != 0 ? results[j] : std::trunc(std::pow(x[i + j], exponents[i + j]));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void power_u32(const uint32_t* x, uint32_t* y, int64_t n, int64_t exponent) {
  TOMBOLO_TARGET(void(const uint32_t*, uint32_t*, int64_t, int64_t), power_any<uint32_t>)
  (x, y, n, exponent);
}
void power_u64(const uint64_t* x, uint64_t* y, int64_t n, int64_t exponent) {
  TOMBOLO_TARGET(void(const uint64_t*, uint64_t*, int64_t, int64_t), power_any<uint64_t>)
  (x, y, n, exponent);
}

template <typename T>
void powers(const T* x, const T* exponents, T* y, int64_t n) {
  TOMBOLO_TARGET(void(const T*, const T*, T*, int64_t), powers_any<T>)(x, exponents, y, n);
}
template void powers(const uint32_t*, const uint32_t*, uint32_t*, int64_t);
template void powers(const uint64_t*, const uint64_t*, uint64_t*, int64_t);

void powers_of_whole(const double* x, const double* exponents, double* y, int64_t n) {
  TOMBOLO_TARGET(void(const double*, const double*, double*, int64_t), powers_whole)
  (x, exponents, y, n);
}

}  // namespace tombolo
#endif
