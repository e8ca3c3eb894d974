// Rounding to integers; included once for each target (Highway's include guards toggle).
#if defined(TOMBOLO_NEAREST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_NEAREST_INL_H
#undef TOMBOLO_NEAREST_INL_H
#else
#define TOMBOLO_NEAREST_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The nearest integers, ties to even, of numbers that 32 bits hold: Highway's own spends four
/// instructions on those beyond.
HWY_INLINE hn::Vec<hn::ScalableTag<int32_t>> nearest(hn::Vec<hn::ScalableTag<float>> x) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<hn::ScalableTag<int32_t>>{_mm512_cvtps_epi32(x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec<hn::ScalableTag<int32_t>>{_mm256_cvtps_epi32(x.raw)};
#elif HWY_TARGET == HWY_SSE4
  return hn::Vec<hn::ScalableTag<int32_t>>{_mm_cvtps_epi32(x.raw)};
#else
  return hn::NearestInt(x);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
