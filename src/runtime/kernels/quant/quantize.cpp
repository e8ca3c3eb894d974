#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quant/quantize.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/quant/nearest-inl.h"
#include "runtime/kernels/quant/quantize.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F>;

template <typename T>
void quantize_any(const float* x, int64_t n, float scale, int32_t zero, T* y) {
  constexpr int32_t kLeast = std::numeric_limits<T>::min(),
                    kGreatest = std::numeric_limits<T>::max();
  const F f;
  const I32 d;
  const hn::Rebind<T, F> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto s = hn::Set(f, scale), lo = hn::Set(f, static_cast<float>(kLeast - zero)),
             hi = hn::Set(f, static_cast<float>(kGreatest - zero));
  const auto z = hn::Set(d, zero);
  // The specification divides. A product with 1 / scale gives the same integer unless it comes near
  // the middle between two: then, and where the reciprocal is no normal number, the division is
  // made.
  const float reciprocal = 1 / scale;
  const bool usable = reciprocal > 1e-30f && reciprocal < 1e30f;
  const auto inverse = hn::Set(f, usable ? reciprocal : 0.0f);
  const auto near_middle = hn::Set(f, usable ? 0.4999f : -1.0f);
  const auto product = [&](int64_t j, int64_t left) HWY_ATTR {
    return min_of(hi, hn::Mul(load_n(f, x + j, left), inverse));
  };
  const auto quotient = [&](int64_t j, int64_t left) HWY_ATTR {
    const auto exact = hn::Div(load_n(f, x + j, left), s);
    return nearest(min_of(hi, max_of(lo, hn::IfThenElseZero(hn::Eq(exact, exact), exact))));
  };
  // Bits of magnitudes, which compare as integers do; NaN is the greatest.
  const auto off = [&](hn::Vec<F> v, hn::Vec<I32> q) HWY_ATTR {
    return hn::BitCast(d, hn::Abs(hn::Sub(v, hn::ConvertTo(f, q))));
  };
  const auto limit = hn::BitCast(d, near_middle);
  int64_t i = 0;
  const hn::ScalableTag<T> four;
  const hn::ScalableTag<int16_t> d16;
  const auto z16 = hn::Set(d16, static_cast<int16_t>(zero));
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto v0 = product(i, lanes), v1 = product(i + lanes, lanes),
               v2 = product(i + 2 * lanes, lanes), v3 = product(i + 3 * lanes, lanes);
    auto q0 = nearest(v0), q1 = nearest(v1), q2 = nearest(v2), q3 = nearest(v3);
    const auto most = max_of(max_of(off(v0, q0), off(v1, q1)), max_of(off(v2, q2), off(v3, q3)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(most, limit)))) {
      q0 = quotient(i, lanes);
      q1 = quotient(i + lanes, lanes);
      q2 = quotient(i + 2 * lanes, lanes);
      q3 = quotient(i + 3 * lanes, lanes);
    }
    const auto joined =
        join_bytes(four, q0, q1, q2, q3, [&](auto v) HWY_ATTR { return hn::SaturatedAdd(v, z16); });
    hn::StoreU(joined, four, y + i);
  }
  for (; i < n; i += lanes) {
    const auto v = max_of(lo, product(i, n - i));
    auto q = nearest(v);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(off(v, q), limit)))) q = quotient(i, n - i);
    store_n(bytes_inside(bytes, hn::Add(q, z)), bytes, y + i, n - i);
  }
}

/// To 16 bits, which no product with 1 / scale is exact enough for.
template <typename T>
void quantize16(const float* x, int64_t n, float scale, int32_t zero, T* y) {
  constexpr int32_t kLeast = std::numeric_limits<T>::min(),
                    kGreatest = std::numeric_limits<T>::max();
  const F f;
  const I32 d;
  const hn::Rebind<T, F> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto s = hn::Set(f, scale), lo = hn::Set(f, static_cast<float>(kLeast - zero)),
             hi = hn::Set(f, static_cast<float>(kGreatest - zero));
  const auto z = hn::Set(d, zero);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto exact = hn::Div(load_n(f, x + i, n - i), s);
    const auto number = hn::IfThenElseZero(hn::Eq(exact, exact), exact);
    const auto q = hn::Add(nearest(min_of(hi, max_of(lo, number))), z);
    store_n(hn::DemoteTo(narrow, q), narrow, y + i, n - i);
  }
}

template <typename T>
void dequantize(const void* x, int64_t n, float scale, int32_t zero, float* y) {
  const F f;
  const I32 d;
  const hn::Rebind<T, F> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto s = hn::Set(f, scale);
  const auto z = hn::Set(d, zero);
  const T* from = static_cast<const T*>(x);
  for (int64_t i = 0; i < n; i += lanes) {
    auto v = hn::Zero(d);
    if constexpr (sizeof(T) == 4)
      v = load_n(d, from + i, n - i);
    else
      v = hn::PromoteTo(d, load_n(bytes, from + i, n - i));
    store_n(hn::Mul(hn::ConvertTo(f, hn::Sub(v, z)), s), f, y + i, n - i);
  }
}

/// Takes n numbers into the range; those that are none (NaN) change nothing.
void widen_range(const float* x, int64_t n, float* least, float* greatest) {
  const F f;
  using V = hn::Vec<F>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  V low = hn::Set(f, *least), high = hn::Set(f, *greatest);
  V low1 = low, low2 = low, low3 = low, high1 = high, high2 = high, high3 = high;
  const auto take = [&](const float* from, V& a, V& b) HWY_ATTR {
    const V v = hn::LoadU(f, from);
    a = min_of(v, a);
    b = max_of(v, b);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    take(x + i, low, high);
    take(x + i + lanes, low1, high1);
    take(x + i + 2 * lanes, low2, high2);
    take(x + i + 3 * lanes, low3, high3);
  }
  *least = hn::GetLane(hn::MinOfLanes(f, min_of(min_of(low, low1), min_of(low2, low3))));
  *greatest = hn::GetLane(hn::MaxOfLanes(f, max_of(max_of(high, high1), max_of(high2, high3))));
  for (; i < n; ++i) {
    if (x[i] < *least) *least = x[i];
    if (x[i] > *greatest) *greatest = x[i];
  }
}

template <typename T>
void sum_columns(const T* x, int64_t rows, int64_t columns, int64_t* sums, int64_t* squares) {
  const I32 d;
  const hn::Rebind<T, I32> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN int32_t room[HWY_MAX_BYTES / 4];
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t n = std::min(lanes, columns - c);
    // 32 bits hold the squares of kMostSummed codes, as numbers without sign.
    auto sum = hn::Zero(d), square = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) {
      const auto v = hn::PromoteTo(d, load_n(bytes, x + r * columns + c, n));
      sum = hn::Add(sum, v);
      square = hn::Add(square, hn::Mul(v, v));
    }
    hn::Store(sum, d, room);
    for (int64_t i = 0; i < n; ++i) sums[c + i] += room[i];
    hn::Store(square, d, room);
    for (int64_t i = 0; i < n; ++i) squares[c + i] += static_cast<uint32_t>(room[i]);
  }
}
void sum_codes_any(const uint8_t* x, bool is_signed, int64_t rows, int64_t columns, int64_t* sums,
                   int64_t* squares) {
  if (is_signed)
    sum_columns(reinterpret_cast<const int8_t*>(x), rows, columns, sums, squares);
  else
    sum_columns(x, rows, columns, sums, squares);
}

template <typename From, typename To>
void affine_codes(const CodeAffine& a, bool each, const uint8_t* x, int64_t n, uint8_t* y) {
  const F f;
  const I32 d;
  const hn::Rebind<From, F> from;
  const hn::Rebind<To, F> to;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto least = hn::Set(f, static_cast<float>(a.low - a.zero)),
             greatest = hn::Set(f, static_cast<float>(a.high - a.zero));
  const auto zero = hn::Set(d, a.zero);
  const auto* codes = reinterpret_cast<const From*>(x);
  auto* out = reinterpret_cast<To*>(y);
  auto factor = hn::Set(f, a.factor[0]), shift = hn::Set(f, a.shift[0]);
  const auto made = [&](auto v) HWY_ATTR {
    // Not in one step, which SSE4 does not have: codes are the same everywhere.
    const auto number = hn::Add(hn::Mul(hn::ConvertTo(f, hn::PromoteTo(d, v)), factor), shift);
    return bytes_inside(to, hn::Add(nearest(min_of(max_of(number, least), greatest)), zero));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (each) {
      factor = hn::LoadU(f, a.factor + i);
      shift = hn::LoadU(f, a.shift + i);
    }
    hn::StoreU(made(hn::LoadU(from, codes + i)), to, out + i);
  }
  if (i == n) return;
  if (each) {
    factor = load_n(f, a.factor + i, n - i);
    shift = load_n(f, a.shift + i, n - i);
  }
  store_n(made(load_n(from, codes + i, n - i)), to, out + i, n - i);
}

void affine_any(const CodeAffine& a, bool each, const uint8_t* x, int64_t n, uint8_t* y) {
  if (a.x_signed && a.y_signed) return affine_codes<int8_t, int8_t>(a, each, x, n, y);
  if (a.x_signed) return affine_codes<int8_t, uint8_t>(a, each, x, n, y);
  if (a.y_signed) return affine_codes<uint8_t, int8_t>(a, each, x, n, y);
  affine_codes<uint8_t, uint8_t>(a, each, x, n, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void quantize_row(const float* x, int64_t n, float scale, int32_t zero, bool is_signed,
                  uint8_t* y) {
  if (is_signed)
    TOMBOLO_TARGET(void(const float*, int64_t, float, int32_t, int8_t*), quantize_any<int8_t>)
  (x, n, scale, zero, reinterpret_cast<int8_t*>(y));
  else TOMBOLO_TARGET(void(const float*, int64_t, float, int32_t, uint8_t*), quantize_any<uint8_t>)(
      x, n, scale, zero, y);
}

void quantize_row16(const float* x, int64_t n, float scale, int32_t zero, bool is_signed,
                    uint16_t* y) {
  if (is_signed)
    TOMBOLO_TARGET(void(const float*, int64_t, float, int32_t, int16_t*), quantize16<int16_t>)
  (x, n, scale, zero, reinterpret_cast<int16_t*>(y));
  else TOMBOLO_TARGET(void(const float*, int64_t, float, int32_t, uint16_t*), quantize16<uint16_t>)(
      x, n, scale, zero, y);
}

void value_range(const float* x, int64_t n, float& least, float& greatest) {
  TOMBOLO_TARGET(void(const float*, int64_t, float*, float*), widen_range)(x, n, &least, &greatest);
}

void dequantize_row(const void* x, bool is_signed, int64_t n, float scale, int32_t zero, float* y) {
  using Fn = void(const void*, int64_t, float, int32_t, float*);
  (is_signed ? TOMBOLO_TARGET(Fn, dequantize<int8_t>) : TOMBOLO_TARGET(Fn, dequantize<uint8_t>))(
      x, n, scale, zero, y);
}

void dequantize_row16(const void* x, bool is_signed, int64_t n, float scale, int32_t zero,
                      float* y) {
  using Fn = void(const void*, int64_t, float, int32_t, float*);
  (is_signed ? TOMBOLO_TARGET(Fn, dequantize<int16_t>) : TOMBOLO_TARGET(Fn, dequantize<uint16_t>))(
      x, n, scale, zero, y);
}

void dequantize_sums(const int32_t* x, int64_t n, float scale, int32_t zero, float* y) {
  using Fn = void(const void*, int64_t, float, int32_t, float*);
  TOMBOLO_TARGET(Fn, dequantize<int32_t>)(x, n, scale, zero, y);
}

void sum_codes(const uint8_t* x, bool is_signed, int64_t rows, int64_t columns, int64_t* sums,
               int64_t* squares) {
  using Fn = void(const uint8_t*, bool, int64_t, int64_t, int64_t*, int64_t*);
  TOMBOLO_TARGET(Fn, sum_codes_any)(x, is_signed, rows, columns, sums, squares);
}

void affine_row(const CodeAffine& affine, bool each, const uint8_t* x, int64_t n, uint8_t* y) {
  using Fn = void(const CodeAffine&, bool, const uint8_t*, int64_t, uint8_t*);
  TOMBOLO_TARGET(Fn, affine_any)(affine, each, x, n, y);
}

}  // namespace tombolo
#endif
