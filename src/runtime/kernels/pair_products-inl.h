// Products of 16-bit numbers, two added in 32 bits; included once for each target (Highway's
// include guards toggle).
#if defined(TOMBOLO_PAIR_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_PAIR_PRODUCTS_INL_H
#undef TOMBOLO_PAIR_PRODUCTS_INL_H
#else
#define TOMBOLO_PAIR_PRODUCTS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// a[2i] b[2i] + a[2i+1] b[2i+1] for each i.
HWY_INLINE hn::Vec<hn::ScalableTag<int32_t>> pair_products(hn::Vec<hn::ScalableTag<int16_t>> a,
                                                           hn::Vec<hn::ScalableTag<int16_t>> b) {
  [[maybe_unused]] const hn::ScalableTag<int32_t> d;
#if HWY_TARGET == HWY_AVX3
  return {_mm512_madd_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
  return {_mm256_madd_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_SSE4
  return {_mm_madd_epi16(a.raw, b.raw)};
#else
  const auto even = [&](auto v) {
    return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(d, v)));
  };
  const auto odd = [&](auto v) { return hn::ShiftRight<16>(hn::BitCast(d, v)); };
  return hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b)));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
