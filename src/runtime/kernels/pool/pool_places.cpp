#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/pool/pool_places.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/pool/pool_places.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_POOL_PLACES_ONCE  // included once for each target
#define TOMBOLO_POOL_PLACES_ONCE
namespace tombolo {
/// Positions of a window along an axis that lie inside: [low, high).
struct Inside {
  int64_t start, low, high;
  Inside(const ConvGeometry& s, int axis, int64_t at) : start(at * s.stride[axis] - s.pad[axis]) {
    const int64_t step = s.dilation[axis], end = s.in[axis];
    low = start >= 0 ? 0 : (-start + step - 1) / step;
    high = end <= start ? 0 : std::min(s.kernel[axis], (end - 1 - start) / step + 1);
  }
};
template <typename T>
constexpr T least_of() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Bytes are compared as integers of 32 bits, places count in integers as wide as what is compared.
template <typename T>
using PoolCompared = std::conditional_t<sizeof(T) == 1, int32_t, T>;

/// Whether elements far apart are gathered: sixteen take as long as one by one, and more than few.
template <typename T>
inline constexpr bool kGathers = HWY_TARGET == HWY_AVX2 && sizeof(T) == 4;

/// Every `stride`-th of the elements from p, of which `left` are wanted.
template <typename T, class D>
HWY_INLINE hn::Vec<D> load_every(D d, const T* p, int64_t stride, int64_t left, const T* end) {
  using C = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (stride == 1) {
    if constexpr (sizeof(T) == 1)
      return hn::PromoteTo(d, load_n(hn::Rebind<T, D>(), p, left));
    else
      return load_n(d, p, left);
  }
  if constexpr (sizeof(T) != 1)
    if (stride == 2 && p + 2 * lanes <= end)
      return hn::ConcatEven(d, hn::LoadU(d, p + lanes), hn::LoadU(d, p));
#if HWY_TARGET == HWY_AVX2
  if constexpr (kGathers<T>) {
    // Those that are not wanted are the first again.
    const hn::RebindToSigned<D> di;
    const auto at = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride)));
    const auto wanted = hn::FirstN(di, static_cast<size_t>(std::min(left, lanes)));
    return hn::GatherIndex(d, p, hn::IfThenElseZero(wanted, at));
  }
#endif
  HWY_ALIGN C room[HWY_LANES(C)] = {};
  for (int64_t i = 0; i < std::min(left, lanes); ++i) room[i] = p[i * stride];
  return hn::Load(d, room);
}

template <class DI>
HWY_INLINE void store_places(DI, hn::Vec<DI> v, int64_t first, int64_t left, int64_t* to) {
  const hn::ScalableTag<int64_t> wide;
  const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
  const auto base = hn::Set(wide, first);
  if constexpr (sizeof(hn::TFromD<DI>) == 8) {
    store_n(hn::Add(v, base), wide, to, left);
  } else {
    const hn::Half<DI> half;
    store_n(hn::Add(hn::PromoteTo(wide, hn::LowerHalf(half, v)), base), wide, to, left);
    if (left > lanes)
      store_n(hn::Add(hn::PromoteTo(wide, hn::UpperHalf(half, v)), base), wide, to + lanes,
              left - lanes);
  }
}

template <typename T>
void places_of(const PoolPlaces& pool, const T* x, int64_t first, T* y, int64_t* places) {
  using C = PoolCompared<T>;
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using V = hn::Vec<decltype(d)>;
  using I = hn::TFromD<decltype(di)>;
  constexpr bool kFloating = std::is_floating_point_v<T>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const ConvGeometry& s = pool.shape;
  const int64_t width = s.in[2], slice = s.in[1] * width;
  const T* end = x + s.in_plane();
  // Outputs whose windows lie inside the image from left to right.
  const int64_t reach = s.extent(2);
  const int64_t from = std::min(s.out[2], (s.pad[2] + s.stride[2] - 1) / s.stride[2]);
  const int64_t to = width + s.pad[2] < reach
                         ? from
                         : std::clamp((width + s.pad[2] - reach) / s.stride[2] + 1, from, s.out[2]);
  const auto ramp = hn::Mul(hn::Iota(hn::RebindToSigned<decltype(d)>(), 0),
                            hn::Set(di, static_cast<I>(s.stride[2] * pool.step[2])));
  for (int64_t o = 0; o < s.out[0]; ++o)
    for (int64_t r = 0; r < s.out[1];
         ++r, y += s.out[2], places += places == nullptr ? 0 : s.out[2]) {
      const Inside deep(s, 0, o), down(s, 1, r);
      const auto one = [&](int64_t j) {
        const Inside along(s, 2, j);
        T best = least_of<T>();
        int64_t where = -1;
        for (int64_t p = deep.low; p < deep.high; ++p)
          for (int64_t q = down.low; q < down.high; ++q) {
            const int64_t depth = deep.start + p * s.dilation[0],
                          row = down.start + q * s.dilation[1];
            const T* line = x + depth * slice + row * width;
            for (int64_t k = along.low; k < along.high; ++k) {
              const int64_t column = along.start + k * s.dilation[2];
              const T value = line[column];
              if (value <= best && where >= 0) continue;
              if (best != best) continue;  // what is no number is the greatest
              best = value;
              where = depth * pool.step[0] + row * pool.step[1] + column * pool.step[2];
            }
          }
        y[j] = best;
        if (places != nullptr) places[j] = where < 0 ? where : first + where;
      };
      const bool empty = deep.low >= deep.high || down.low >= down.high;
      const int64_t whole_from = empty ? s.out[2] : from, whole_to = empty ? s.out[2] : to;
      for (int64_t j = 0; j < whole_from; ++j) one(j);
      for (int64_t j = whole_from; j < whole_to; j += lanes) {
        const int64_t left = whole_to - j, start = j * s.stride[2] - s.pad[2];
        // Elements far apart come one by one: a few are compared as fast as a vector is made of
        // them.
        if (s.stride[2] > 2 && left <= (kGathers<T> ? 2 : lanes / 2)) {
          for (int64_t i = j; i < whole_to; ++i) one(i);
          break;
        }
        V best = hn::Zero(d);
        auto where = hn::Zero(di);
        bool any = false;
        for (int64_t p = deep.low; p < deep.high; ++p)
          for (int64_t q = down.low; q < down.high; ++q) {
            const int64_t depth = deep.start + p * s.dilation[0],
                          row = down.start + q * s.dilation[1];
            const T* line = x + depth * slice + row * width + start;
            const int64_t place = depth * pool.step[0] + row * pool.step[1];
            for (int64_t k = 0; k < s.kernel[2]; ++k) {
              const int64_t column = k * s.dilation[2];
              const V value = load_every(d, line + column, s.stride[2], left, end);
              const auto at = hn::Set(di, static_cast<I>(place + column * pool.step[2]));
              if (!any) {
                best = value;
                where = at;
                any = true;
                continue;
              }
              auto better = hn::Gt(value, best);
              if constexpr (kFloating)
                better = hn::AndNot(hn::IsNaN(best), hn::Or(better, hn::IsNaN(value)));
              best = hn::IfThenElse(better, value, best);
              where = hn::IfThenElse(hn::RebindMask(di, better), at, where);
            }
          }
        if constexpr (sizeof(T) == 1) {
          const hn::Rebind<T, decltype(d)> narrow;
          store_n(hn::DemoteTo(narrow, best), narrow, y + j, left);
        } else {
          store_n(best, d, y + j, left);
        }
        if (places != nullptr)
          store_places(di, hn::Add(where, ramp), first + start * pool.step[2], left, places + j);
      }
      for (int64_t j = std::max(whole_from, whole_to); j < s.out[2]; ++j) one(j);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void pool_places(const PoolPlaces& pool, const T* x, int64_t first, T* y, int64_t* places) {
  TOMBOLO_TARGET(void(const PoolPlaces&, const T*, int64_t, T*, int64_t*), places_of<T>)
      .get()(pool, x, first, y, places);
}
#define TOMBOLO_PLACES(T) \
  template void pool_places(const PoolPlaces&, const T*, int64_t, T*, int64_t*);
TOMBOLO_PLACES(float)
TOMBOLO_PLACES(double)
TOMBOLO_PLACES(uint8_t)
TOMBOLO_PLACES(int8_t)
#undef TOMBOLO_PLACES

}  // namespace tombolo
#endif
