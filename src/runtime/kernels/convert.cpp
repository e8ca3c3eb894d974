#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/convert.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "base/float_formats.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F>;

#if HWY_TARGET <= HWY_AVX2
using H = hn::Rebind<hwy::float16_t, F>;
void widen_f16(const uint16_t* x, float* y, int64_t n) {
  const F f;
  const H h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto* from = reinterpret_cast<const hwy::float16_t*>(x);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::PromoteTo(f, hn::LoadU(h, from + i)), f, y + i);
  for (; i < n; ++i) y[i] = decode_float<kF16>(x[i]);
}
void narrow_f16(const float* x, uint16_t* y, int64_t n) {
  const F f;
  const H h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  auto* to = reinterpret_cast<hwy::float16_t*>(y);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(f, x + i);
    // The instruction keeps the payload of a NaN; the format's own NaN is wanted.
    if (HWY_UNLIKELY(!hn::AllFalse(f, hn::IsNaN(v)))) {
      for (int64_t j = i; j < i + lanes; ++j)
        y[j] = static_cast<uint16_t>(encode_float<kF16>(unpack_number(x[j]), false));
      continue;
    }
    hn::StoreU(hn::DemoteTo(h, v), h, to + i);
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

template <typename T>
HWY_INLINE void truncate_any(const float* x, T* y, int64_t n) {
  const F f;
  const hn::RebindToSigned<F> d;
  const hn::Rebind<T, F> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto lo = hn::Set(f, static_cast<float>(std::numeric_limits<T>::lowest())),
             hi = hn::Set(f, static_cast<float>(std::numeric_limits<T>::max()));
  for (int64_t i = 0; i < n; i += lanes) {
    auto v = load_n(f, x + i, n - i);
    v = hn::IfThenElseZero(hn::Eq(v, v), v);
    const auto whole = hn::ConvertTo(d, hn::Min(hi, hn::Max(lo, v)));
    store_n(hn::DemoteTo(bytes, whole), bytes, y + i, n - i);
  }
}
void truncate_u8(const float* x, uint8_t* y, int64_t n) { truncate_any(x, y, n); }
void truncate_i8(const float* x, int8_t* y, int64_t n) { truncate_any(x, y, n); }

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
void f32_to_u8(const float* x, uint8_t* y, int64_t n) {
  TOMBOLO_TARGET(void(const float*, uint8_t*, int64_t), truncate_u8)(x, y, n);
}
void f32_to_i8(const float* x, int8_t* y, int64_t n) {
  TOMBOLO_TARGET(void(const float*, int8_t*, int64_t), truncate_i8)(x, y, n);
}
void f32_to_bf16(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(x[i]);
    const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    y[i] = static_cast<uint16_t>(nan ? (bits >> 16 & 0x8000) | 0x7FC0 : rounded);
  }
}

}  // namespace tombolo
#endif
