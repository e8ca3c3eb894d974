#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/convert.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "base/float_formats.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F>;

/// A NaN with that sign, whatever else its bits said.
HWY_INLINE hn::Vec<F> without_payload(hn::Vec<F> v) {
  const F f;
  const auto nan = hn::BitCast(f, hn::Set(U32(), 0x7FC00000u));
  return hn::IfThenElse(hn::IsNaN(v), hn::Or(hn::And(v, hn::Set(f, -0.0f)), nan), v);
}

#if HWY_TARGET <= HWY_AVX2
using H = hn::Rebind<hwy::float16_t, F>;
void widen_f16(const uint16_t* x, float* y, int64_t n) {
  const F f;
  const H h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto* from = reinterpret_cast<const hwy::float16_t*>(x);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::PromoteTo(f, hn::LoadU(h, from + i)),
               b = hn::PromoteTo(f, hn::LoadU(h, from + i + lanes)),
               c = hn::PromoteTo(f, hn::LoadU(h, from + i + 2 * lanes)),
               e = hn::PromoteTo(f, hn::LoadU(h, from + i + 3 * lanes));
    hn::StoreU(a, f, y + i);
    hn::StoreU(b, f, y + i + lanes);
    hn::StoreU(c, f, y + i + 2 * lanes);
    hn::StoreU(e, f, y + i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::PromoteTo(f, hn::LoadU(h, from + i)), f, y + i);
  for (; i < n; ++i) y[i] = decode_float<kF16>(x[i]);
}
void narrow_f16(const float* x, uint16_t* y, int64_t n) {
  const F f;
  const H h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  auto* to = reinterpret_cast<hwy::float16_t*>(y);
  int64_t i = 0;
  // The instruction keeps the payload of a NaN; the format's own NaN is wanted.
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    auto a = hn::LoadU(f, x + i), b = hn::LoadU(f, x + i + lanes);
    if (HWY_UNLIKELY(!hn::AllFalse(f, hn::Or(hn::IsNaN(a), hn::IsNaN(b))))) {
      a = without_payload(a);
      b = without_payload(b);
    }
    hn::StoreU(hn::DemoteTo(h, a), h, to + i);
    hn::StoreU(hn::DemoteTo(h, b), h, to + i + lanes);
  }
  for (; i < n; ++i) y[i] = static_cast<uint16_t>(encode_float<kF16>(unpack_number(x[i]), false));
}
#else
void widen_f16(const uint16_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = decode_float<kF16>(x[i]);
}
void narrow_f16(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<uint16_t>(encode_float<kF16>(unpack_number(x[i]), false));
}
#endif

void widen_bf16(const uint16_t* x, float* y, int64_t n) {
  const U32 u;
  const F f;
  const hn::Rebind<uint16_t, F> h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::BitCast(f, hn::ShiftLeft<16>(hn::PromoteTo(u, hn::LoadU(h, x + i)))), f, y + i);
  for (; i < n; ++i) y[i] = decode_float<kBF16>(x[i]);
}

void narrow_bf16(const float* x, uint16_t* y, int64_t n) {
  const U32 u;
  const F f;
  const hn::Repartition<uint16_t, F> both;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto one = hn::Set(u, 1), half = hn::Set(u, 0x7FFF);
  // The upper halves are the results.
  const auto rounded = [&](hn::Vec<F> v) HWY_ATTR {
    const auto bits = hn::BitCast(u, v);
    const auto up = hn::Add(half, hn::And(hn::ShiftRight<16>(bits), one));
    const auto nan = hn::BitCast(u, without_payload(v));
    return hn::BitCast(both,
                       hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(v)), nan, hn::Add(bits, up)));
  };
  for (int64_t i = 0; i < n; i += 2 * lanes) {
    const auto a = rounded(load_n(f, x + i, n - i)),
               b = rounded(load_n(f, x + i + lanes, n - i - lanes));
    store_n(hn::ConcatOdd(both, b, a), both, y + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void f16_to_f32(const uint16_t* x, float* y, int64_t n) {
  TOMBOLO_TARGET(void(const uint16_t*, float*, int64_t), widen_f16)(x, y, n);
}
void f32_to_f16(const float* x, uint16_t* y, int64_t n) {
  TOMBOLO_TARGET(void(const float*, uint16_t*, int64_t), narrow_f16)(x, y, n);
}
void bf16_to_f32(const uint16_t* x, float* y, int64_t n) {
  TOMBOLO_TARGET(void(const uint16_t*, float*, int64_t), widen_bf16)(x, y, n);
}
void f32_to_bf16(const float* x, uint16_t* y, int64_t n) {
  TOMBOLO_TARGET(void(const float*, uint16_t*, int64_t), narrow_bf16)(x, y, n);
}

}  // namespace tombolo
#endif
