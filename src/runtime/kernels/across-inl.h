// Folds across the lanes of several vectors at once; included once for each target (Highway's
// include guards toggle).
#if defined(TOMBOLO_ACROSS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_ACROSS_INL_H
#undef TOMBOLO_ACROSS_INL_H
#else
#define TOMBOLO_ACROSS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The fold of all lanes of each of as many vectors as one has lanes, in the lane of its place: by
/// folds of neighbours, which leave half as many vectors each time. One by one each would take a
/// shuffle more a step.
template <int kCount, class D, typename Fold, class V = hn::Vec<D>>
HWY_INLINE V fold_parts(D d, const V* parts, Fold&& fold) {
  if constexpr (kCount == 1) {
    return parts[0];
  } else {
    V halves[kCount / 2];
#pragma GCC unroll 8
    for (int i = 0; i < kCount / 2; ++i)
      halves[i] = fold(hn::ConcatEven(d, parts[2 * i + 1], parts[2 * i]),
                       hn::ConcatOdd(d, parts[2 * i + 1], parts[2 * i]));
    return fold_parts<kCount / 2>(d, halves, fold);
  }
}
template <class D, typename Fold, class V = hn::Vec<D>>
HWY_INLINE V fold_across(D d, const V* parts, Fold&& fold) {
  return fold_parts<HWY_LANES(hn::TFromD<D>)>(d, parts, fold);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sums_across(D d, const V* parts) {
  return fold_across(d, parts, [](V a, V b) HWY_ATTR { return hn::Add(a, b); });
}

/// The sums of the lanes of four vectors of floats.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void sums_of_four(D d, V s0, V s1, V s2, V s3, float* out) {
  const hn::RepartitionToWide<D> wide;
  const V s01 = hn::Add(hn::InterleaveLower(d, s0, s1), hn::InterleaveUpper(d, s0, s1));
  const V s23 = hn::Add(hn::InterleaveLower(d, s2, s3), hn::InterleaveUpper(d, s2, s3));
  const auto low = hn::BitCast(wide, s01), high = hn::BitCast(wide, s23);
  const V all = hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, low, high)),
                        hn::BitCast(d, hn::InterleaveUpper(wide, low, high)));
#if HWY_TARGET <= HWY_AVX3
  const hn::Half<D> half;
  const hn::Half<decltype(half)> quarter;
  const auto two = hn::Add(hn::LowerHalf(half, all), hn::UpperHalf(half, all));
  hn::StoreU(hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two)), quarter, out);
#elif HWY_TARGET <= HWY_AVX2
  const hn::Half<D> half;
  hn::StoreU(hn::Add(hn::LowerHalf(half, all), hn::UpperHalf(half, all)), half, out);
#else
  hn::StoreU(all, d, out);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
