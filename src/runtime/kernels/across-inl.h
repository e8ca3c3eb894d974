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
template <class D, typename Fold, class V = hn::Vec<D>>
HWY_INLINE V fold_across(D d, V* parts, Fold&& fold) {
  for (auto count = static_cast<int64_t>(HWY_LANES(hn::TFromD<D>)); count > 1; count /= 2)
    for (int64_t i = 0; i < count / 2; ++i) {
      const V low = parts[2 * i], high = parts[2 * i + 1];
      parts[i] = fold(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
    }
  return parts[0];
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sums_across(D d, V* parts) {
  return fold_across(d, parts, [](V a, V b) HWY_ATTR { return hn::Add(a, b); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
