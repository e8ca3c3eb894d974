// Rounding to integers; included once for each target (Highway's include guards toggle).
#if defined(TOMBOLO_NEAREST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_NEAREST_INL_H
#undef TOMBOLO_NEAREST_INL_H
#else
#define TOMBOLO_NEAREST_INL_H
#endif

#include <hwy/highway.h>

#include <type_traits>

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

/// Truncated towards zero; numbers that 32 bits do not hold give the least integer on x86.
HWY_INLINE hn::Vec<hn::ScalableTag<int32_t>> truncated(hn::Vec<hn::ScalableTag<float>> x) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<hn::ScalableTag<int32_t>>{_mm512_cvttps_epi32(x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec<hn::ScalableTag<int32_t>>{_mm256_cvttps_epi32(x.raw)};
#elif HWY_TARGET == HWY_SSE4
  return hn::Vec<hn::ScalableTag<int32_t>>{_mm_cvttps_epi32(x.raw)};
#else
  return hn::ConvertTo(hn::ScalableTag<int32_t>(), x);
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

/// The bytes of four vectors of integers in one, limited to what a byte of the target type holds.
/// `between` is done to each pair of vectors while they are limited to 16 bits, in an order that is
/// the machine's own.
template <class D, class Between>
HWY_INLINE hn::Vec<D> join_bytes(D d, hn::Vec<hn::ScalableTag<int32_t>> a,
                                 hn::Vec<hn::ScalableTag<int32_t>> b,
                                 hn::Vec<hn::ScalableTag<int32_t>> c,
                                 hn::Vec<hn::ScalableTag<int32_t>> e, Between&& between) {
  const hn::Repartition<int16_t, D> d16;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  (void)d;
  constexpr bool kSigned = std::is_signed_v<hn::TFromD<D>>;
  // In lanes of 128 bits: four numbers of each vector, then the next four.
  const auto low = between(hn::ReorderDemote2To(d16, a, b)).raw,
             high = between(hn::ReorderDemote2To(d16, c, e)).raw;
#if HWY_TARGET == HWY_AVX3
  const __m512i bytes = kSigned ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return hn::Vec<D>{_mm512_permutexvar_epi32(order, bytes)};
#else
  const __m256i bytes = kSigned ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return hn::Vec<D>{_mm256_permutevar8x32_epi32(bytes, order)};
#endif
#else
  const hn::Half<decltype(d16)> h16;
  const hn::Half<D> h8;
  const auto low = between(hn::Combine(d16, hn::DemoteTo(h16, b), hn::DemoteTo(h16, a))),
             high = between(hn::Combine(d16, hn::DemoteTo(h16, e), hn::DemoteTo(h16, c)));
  return hn::Combine(d, hn::DemoteTo(h8, high), hn::DemoteTo(h8, low));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
