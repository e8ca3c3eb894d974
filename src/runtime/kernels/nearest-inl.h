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

/// Integers that a byte of the target type holds, as such bytes: Highway's own limits them first.
template <class D>
HWY_INLINE hn::Vec<D> bytes_inside(D d, hn::Vec<hn::ScalableTag<int32_t>> x) {
#if HWY_TARGET == HWY_AVX3
  (void)d;
  return hn::Vec<D>{_mm512_cvtepi32_epi8(x.raw)};
#else
  return hn::DemoteTo(d, x);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
