#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quantize.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/nearest-inl.h"
#include "runtime/kernels/quantize.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F>;

template <typename T>
HWY_INLINE void quantize_any(const float* x, int64_t n, float scale, int32_t zero, int32_t least,
                             int32_t greatest, T* y) {
  const F f;
  const I32 d;
  const hn::Rebind<T, F> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto s = hn::Set(f, scale), lo = hn::Set(f, static_cast<float>(least - zero)),
             hi = hn::Set(f, static_cast<float>(greatest - zero));
  const auto z = hn::Set(d, zero);
  // The specification divides. A product with 1 / scale gives the same integer unless it comes near
  // the middle between two: then, and where the reciprocal is no normal number, the division is
  // made.
  const float reciprocal = 1 / scale;
  const bool usable = reciprocal > 1e-30f && reciprocal < 1e30f;
  const auto inverse = hn::Set(f, usable ? reciprocal : 0.0f);
  const auto near_middle = hn::Set(f, usable ? 0.4999f : -1.0f);
  const auto some = [&](int64_t i, int64_t left) HWY_ATTR {
    const auto given = load_n(f, x + i, left);
    const auto v = hn::Min(hi, hn::Max(lo, hn::Mul(given, inverse)));
    auto q = nearest(v);
    const auto off = hn::Abs(hn::Sub(v, hn::ConvertTo(f, q)));
    if (HWY_UNLIKELY(!hn::AllTrue(f, hn::Lt(off, near_middle)))) {
      const auto exact = hn::Div(given, s);
      const auto number = hn::IfThenElseZero(hn::Eq(exact, exact), exact);
      q = nearest(hn::Min(hi, hn::Max(lo, number)));
    }
    store_n(bytes_inside(bytes, hn::Add(q, z)), bytes, y + i, left);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) some(i, lanes);
  if (i < n) some(i, n - i);
}

void quantize_signed(const float* x, int64_t n, float scale, int32_t zero, int32_t least,
                     int32_t greatest, void* y) {
  quantize_any(x, n, scale, zero, least, greatest, static_cast<int8_t*>(y));
}
void quantize_unsigned(const float* x, int64_t n, float scale, int32_t zero, int32_t least,
                       int32_t greatest, void* y) {
  quantize_any(x, n, scale, zero, least, greatest, static_cast<uint8_t*>(y));
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
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  auto low = hn::Set(f, *least), high = hn::Set(f, *greatest), low1 = low, high1 = high;
  const auto take = [&](hn::Vec<F> v, hn::Vec<F>& a, hn::Vec<F>& b) HWY_ATTR {
    a = hn::IfThenElse(hn::Lt(v, a), v, a);
    b = hn::IfThenElse(hn::Gt(v, b), v, b);
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    take(hn::LoadU(f, x + i), low, high);
    take(hn::LoadU(f, x + i + lanes), low1, high1);
  }
  *least = hn::GetLane(hn::MinOfLanes(f, hn::Min(low, low1)));
  *greatest = hn::GetLane(hn::MaxOfLanes(f, hn::Max(high, high1)));
  for (; i < n; ++i) {
    if (x[i] < *least) *least = x[i];
    if (x[i] > *greatest) *greatest = x[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void quantize_row(const float* x, int64_t n, float scale, int32_t zero, int32_t least,
                  int32_t greatest, void* y) {
  using Fn = void(const float*, int64_t, float, int32_t, int32_t, int32_t, void*);
  (least < 0 ? TOMBOLO_TARGET(Fn, quantize_signed) : TOMBOLO_TARGET(Fn, quantize_unsigned))(
      x, n, scale, zero, least, greatest, y);
}

void value_range(const float* x, int64_t n, float& least, float& greatest) {
  TOMBOLO_TARGET(void(const float*, int64_t, float*, float*), widen_range)(x, n, &least, &greatest);
}

void dequantize_row(const void* x, bool is_signed, int64_t n, float scale, int32_t zero, float* y) {
  using Fn = void(const void*, int64_t, float, int32_t, float*);
  (is_signed ? TOMBOLO_TARGET(Fn, dequantize<int8_t>) : TOMBOLO_TARGET(Fn, dequantize<uint8_t>))(
      x, n, scale, zero, y);
}

void dequantize_sums(const int32_t* x, int64_t n, float scale, int32_t zero, float* y) {
  using Fn = void(const void*, int64_t, float, int32_t, float*);
  TOMBOLO_TARGET(Fn, dequantize<int32_t>)(x, n, scale, zero, y);
}

}  // namespace tombolo
#endif
