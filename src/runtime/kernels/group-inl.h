// Several vectors that take every step together. Each step of a long polynomial waits for the one
// before, and the processor does not look far enough ahead to find many of the next vectors' by
// itself. Included once for each target.
#if defined(TOMBOLO_GROUP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_GROUP_INL_H
#undef TOMBOLO_GROUP_INL_H
#else
#define TOMBOLO_GROUP_INL_H
#endif

#include <hwy/highway.h>

#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of a group, 1 where groups do not pay.
inline constexpr int kGroup = HWY_TARGET == HWY_AVX2 ? 4 : HWY_TARGET == HWY_AVX3 ? 2 : 1;

/// Vectors, or masks, of a group.
template <class V>
struct Group {
  V v[4];
  Group() = default;
  HWY_INLINE Group(V all) : v{all, all, all, all} {}  // NOLINT: a constant is one of each
};

template <class T>
inline constexpr bool kIsGroup = false;
template <class V>
inline constexpr bool kIsGroup<Group<V>> = true;

template <class T>
HWY_INLINE T part_of(const T& x, int) {
  return x;
}
template <class V>
HWY_INLINE V part_of(const Group<V>& x, int i) {
  return x.v[i];
}

#if HWY_TARGET == HWY_AVX3
/// x * 2^n for whole n.
HWY_INLINE hn::Vec512<float> times_power_of_2(hn::Vec512<float> x, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(x.raw, n.raw)};
}
/// Of 32 numbers those whose places are the lowest bits of `at`.
HWY_INLINE hn::Vec512<float> look_up(hn::Vec512<float> low, hn::Vec512<float> high,
                                     hn::Vec512<float> at) {
  return hn::Vec512<float>{_mm512_permutex2var_ps(low.raw, _mm512_castps_si512(at.raw), high.raw)};
}
#endif

/// Operations of Highway on vectors and on groups.
namespace gn {
#define TOMBOLO_GROUPED(name, operation, ...)                           \
  template <__VA_ARGS__ class... A>                                     \
  HWY_INLINE auto name(const A&... a) {                                 \
    if constexpr ((kIsGroup<A> || ...)) {                               \
      Group<decltype(operation(part_of(a, 0)...))> r;                   \
      _Pragma("GCC unroll 4") for (int i = 0; i < kGroup; ++i) r.v[i] = \
          operation(part_of(a, i)...);                                  \
      return r;                                                         \
    } else {                                                            \
      return operation(a...);                                           \
    }                                                                   \
  }
TOMBOLO_GROUPED(Add, hn::Add)
TOMBOLO_GROUPED(Sub, hn::Sub)
TOMBOLO_GROUPED(Mul, hn::Mul)
TOMBOLO_GROUPED(Div, hn::Div)
TOMBOLO_GROUPED(MulAdd, hn::MulAdd)
TOMBOLO_GROUPED(MulSub, hn::MulSub)
TOMBOLO_GROUPED(NegMulAdd, hn::NegMulAdd)
TOMBOLO_GROUPED(Min, min_of)
TOMBOLO_GROUPED(Max, max_of)
TOMBOLO_GROUPED(Abs, hn::Abs)
TOMBOLO_GROUPED(And, hn::And)
TOMBOLO_GROUPED(Or, hn::Or)
TOMBOLO_GROUPED(Lt, hn::Lt)
TOMBOLO_GROUPED(Gt, hn::Gt)
TOMBOLO_GROUPED(Ge, hn::Ge)
TOMBOLO_GROUPED(IfThenElse, hn::IfThenElse)
TOMBOLO_GROUPED(IfThenZeroElse, hn::IfThenZeroElse)
TOMBOLO_GROUPED(CopySign, hn::CopySign)
TOMBOLO_GROUPED(BitCast, hn::BitCast)
TOMBOLO_GROUPED(NearestInt, hn::NearestInt)
TOMBOLO_GROUPED(ApproximateReciprocal, hn::ApproximateReciprocal)
#if HWY_TARGET == HWY_AVX3
TOMBOLO_GROUPED(TimesPowerOf2, times_power_of_2)
TOMBOLO_GROUPED(LookUp, look_up)
#endif
TOMBOLO_GROUPED(ShiftLeft, hn::ShiftLeft<kBits>, int kBits, )
TOMBOLO_GROUPED(ShiftRight, hn::ShiftRight<kBits>, int kBits, )
#undef TOMBOLO_GROUPED

template <class D>
HWY_INLINE Group<hn::Vec<D>> Load(D d, const hn::TFromD<D>* x) {
  Group<hn::Vec<D>> r;
#pragma GCC unroll 4
  for (int i = 0; i < kGroup; ++i) r.v[i] = hn::LoadU(d, x + i * static_cast<int>(hn::Lanes(d)));
  return r;
}
template <class D>
HWY_INLINE void Store(const Group<hn::Vec<D>>& x, D d, hn::TFromD<D>* y) {
#pragma GCC unroll 4
  for (int i = 0; i < kGroup; ++i) hn::StoreU(x.v[i], d, y + i * static_cast<int>(hn::Lanes(d)));
}
}  // namespace gn

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
