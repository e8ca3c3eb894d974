#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/reduce/extremum.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/reduce/extremum.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Numbers of type T are compared as C: floats as they are, integers in signed ones of 32 or 64
// bits. All is turned so that the greatest is sought: floats by their sign, integers by `flip`,
// which complements them for the least and moves unsigned ones of full width below signed ones.

template <typename T>
using Compared = std::conditional_t<std::is_floating_point_v<T>, T,
                                    std::conditional_t<sizeof(T) == 8, int64_t, int32_t>>;

template <class D, typename C = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> turned(D d, hn::Vec<D> v, C flip) {
  if constexpr (std::is_floating_point_v<C>)
    return hn::Mul(v, hn::Set(d, flip));
  else
    return hn::Xor(v, hn::Set(d, flip));
}
template <typename C>
HWY_INLINE C turned_one(C v, C flip) {
  if constexpr (std::is_floating_point_v<C>)
    return v * flip;
  else
    return v ^ flip;
}

template <typename T, class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const T* x, int64_t left) {
  if constexpr (sizeof(T) == sizeof(hn::TFromD<D>)) {
    return load_n(d, reinterpret_cast<const hn::TFromD<D>*>(x), left);
  } else {
    const hn::Rebind<T, D> narrow;
    return hn::PromoteTo(d, load_n(narrow, x, left));
  }
}

/// Whether `v` takes the place of `best`.
template <class V>
HWY_INLINE auto better(V v, V best, bool last) {
  if constexpr (std::is_floating_point_v<hn::TFromV<V>>) {
    const auto open = hn::Not(hn::IsNaN(best));
    if (last) return hn::Or(hn::IsNaN(v), hn::And(open, hn::Ge(v, best)));
    return hn::And(open, hn::Or(hn::IsNaN(v), hn::Gt(v, best)));
  } else {
    return last ? hn::Not(hn::Gt(best, v)) : hn::Gt(v, best);
  }
}
template <typename C>
HWY_INLINE bool better_one(C v, C best, bool last) {
  if (best != best) return last && v != v;
  return v != v || v > best || (last && v == best);
}

/// Where the greatest of at least four vectors stands, -1 where one is NaN: what is greatest, then
/// its place, is less to do than to keep places on the way.
template <typename C>
HWY_INLINE int64_t place_of_number(const C* x, int64_t n, C flip, bool last) {
  const hn::ScalableTag<C> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kVectors = 4;
  const int64_t step = kVectors * lanes, whole = n / step * step;
  const auto value = [&](int64_t i) HWY_ATTR { return turned(d, hn::LoadU(d, x + i), flip); };
  V most[kVectors];
  auto nan = hn::MaskFromVec(hn::Zero(d));
  const auto look = [&](V v) HWY_ATTR {
    if constexpr (std::is_floating_point_v<C>) nan = hn::Or(nan, hn::IsNaN(v));
  };
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) most[k] = value(n - (k + 1) * lanes);
  for (int64_t i = 0; i < whole; i += step)
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      const V v = value(i + k * lanes);
      look(v);
      most[k] = max_of(most[k], v);
    }
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) look(value(n - (k + 1) * lanes));
  if (!hn::AllFalse(d, nan)) return -1;
  const V best = hn::MaxOfLanes(d, max_of(max_of(most[0], most[1]), max_of(most[2], most[3])));
  if (last)
    for (int64_t i = n; i > 0; i -= lanes) {
      const int64_t at = std::max<int64_t>(0, i - lanes);
      const auto equal = hn::Eq(value(at), best);
      if (hn::AllFalse(d, equal)) continue;
      int64_t place = at + lanes - 1;
      while (turned_one(x[place], flip) != hn::GetLane(best)) --place;
      return place;
    }
  for (int64_t i = 0;; i += lanes) {
    const int64_t at = std::min(i, n - lanes);
    const auto equal = hn::Eq(value(at), best);
    if (!hn::AllFalse(d, equal)) return at + hn::FindFirstTrue(d, equal);
  }
}

template <typename T, typename C = Compared<T>>
HWY_INLINE int64_t place_in_row(const T* x, int64_t n, C flip, bool last) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using V = hn::Vec<decltype(d)>;
  using I = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t place = 0, i = 0;
  if constexpr (sizeof(T) == sizeof(C))
    if (n >= 4 * lanes)
      if (const int64_t found = place_of_number(reinterpret_cast<const C*>(x), n, flip, last);
          found >= 0)
        return found;
  C best = turned_one(static_cast<C>(x[0]), flip);
  if (n >= 2 * lanes) {
    // Two places in turn: each waits for its last comparison.
    V most[2];
    hn::Vec<decltype(di)> at[2], now = hn::Iota(di, 0);
    const auto step = hn::Set(di, static_cast<I>(lanes));
    for (int k = 0; k < 2; ++k, now = hn::Add(now, step)) {
      most[k] = turned(d, load_wide(d, x + k * lanes, lanes), flip);
      at[k] = now;
    }
    for (i = 2 * lanes; i + 2 * lanes <= n; i += 2 * lanes) {
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        const V v = turned(d, load_wide(d, x + i + k * lanes, lanes), flip);
        const auto mask = better(v, most[k], last);
        most[k] = hn::IfThenElse(mask, v, most[k]);
        at[k] = hn::IfThenElse(hn::RebindMask(di, mask), now, at[k]);
        now = hn::Add(now, step);
      }
    }
    HWY_ALIGN C values[2 * HWY_LANES(C)];
    HWY_ALIGN I places[2 * HWY_LANES(C)];
    for (int k = 0; k < 2; ++k) {
      hn::Store(most[k], d, values + k * lanes);
      hn::Store(at[k], di, places + k * lanes);
    }
    best = values[0];
    place = places[0];
    for (int64_t k = 1; k < 2 * lanes; ++k) {
      const C v = values[k];
      const bool equal = v == best || (v != v && best != best);
      if (equal ? (last ? places[k] > place : places[k] < place) : better_one(v, best, false)) {
        best = v;
        place = places[k];
      }
    }
  }
  for (; i < n; ++i) {
    const C v = turned_one(static_cast<C>(x[i]), flip);
    if (i == 0 || !better_one(v, best, last)) continue;
    best = v;
    place = i;
  }
  return place;
}

template <typename T, typename C = Compared<T>>
HWY_INLINE void places_in_columns(const T* x, int64_t n, int64_t step, int64_t width, C flip,
                                  bool last, int64_t* places) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using V = hn::Vec<decltype(d)>;
  using I = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < width; j += lanes) {
    const int64_t left = width - j;
    V most = turned(d, load_wide(d, x + j, left), flip);
    auto at = hn::Zero(di);
    for (int64_t i = 1; i < n; ++i) {
      const V v = turned(d, load_wide(d, x + i * step + j, left), flip);
      const auto mask = better(v, most, last);
      most = hn::IfThenElse(mask, v, most);
      at = hn::IfThenElse(hn::RebindMask(di, mask), hn::Set(di, static_cast<I>(i)), at);
    }
    HWY_ALIGN I found[HWY_LANES(C)];
    hn::Store(at, di, found);
    std::copy_n(found, std::min(lanes, left), places + j);
  }
}

template <typename T>
void all_places(const Extremum& e, const void* data, int64_t count, bool is_unsigned,
                int64_t* places) {
  using C = Compared<T>;
  const T* x = static_cast<const T*>(data);
  C flip{};
  if constexpr (std::is_floating_point_v<C>) {
    flip = e.greatest ? C{1} : C{-1};
  } else {
    if (is_unsigned && sizeof(T) == sizeof(C)) flip = std::numeric_limits<C>::min();
    if (!e.greatest) flip = static_cast<C>(~flip);
  }
  if (e.step != 1) {
    e.last ? places_in_columns(x, e.n, e.step, count, flip, true, places)
           : places_in_columns(x, e.n, e.step, count, flip, false, places);
  } else {
    for (int64_t i = 0; i < count; ++i)
      places[i] = e.last ? place_in_row(x + i * e.n, e.n, flip, true)
                         : place_in_row(x + i * e.n, e.n, flip, false);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool has_extremum_places(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kInt32:
    case DType::kUInt32:
    case DType::kInt64:
    case DType::kUInt64:
      return true;
    default:
      return false;
  }
}

void extremum_places(const Extremum& extremum, DType dtype, const void* x, int64_t count,
                     int64_t* places) {
  // Short lines leave most of a vector empty, or take longer to end than to read: they are turned
  // into columns.
  constexpr int64_t kShort = 64, kLines = 64, kShortBytes = 256;
  const auto size = static_cast<int64_t>(bytes_of(dtype));
  if (extremum.step == 1 && extremum.n > 1 && extremum.n <= kShort &&
      extremum.n * size <= kShortBytes && count >= 16) {
    const int64_t n = extremum.n;
    alignas(64) std::byte columns[kShortBytes * kLines];
    Extremum down = extremum;
    down.step = kLines;
    for (int64_t i = 0; i < count; i += kLines) {
      const int64_t some = std::min(kLines, count - i);
      transpose_tile(static_cast<const std::byte*>(x) + i * n * size, n, columns, kLines, some, n,
                     size);
      extremum_places(down, dtype, columns, some, places + i);
    }
    return;
  }
  using Fn = void(const Extremum&, const void*, int64_t, bool, int64_t*);
  const auto run = [&](const IsaRow<Fn>& row, bool is_unsigned = false) {
    row.get()(extremum, x, count, is_unsigned, places);
  };
  switch (dtype) {
    case DType::kFloat32:
      return run(TOMBOLO_TARGET(Fn, all_places<float>));
    case DType::kFloat64:
      return run(TOMBOLO_TARGET(Fn, all_places<double>));
    case DType::kInt8:
      return run(TOMBOLO_TARGET(Fn, all_places<int8_t>));
    case DType::kUInt8:
      return run(TOMBOLO_TARGET(Fn, all_places<uint8_t>));
    case DType::kInt16:
      return run(TOMBOLO_TARGET(Fn, all_places<int16_t>));
    case DType::kUInt16:
      return run(TOMBOLO_TARGET(Fn, all_places<uint16_t>));
    case DType::kInt32:
      return run(TOMBOLO_TARGET(Fn, all_places<int32_t>));
    case DType::kUInt32:
      return run(TOMBOLO_TARGET(Fn, all_places<int32_t>), true);
    case DType::kInt64:
      return run(TOMBOLO_TARGET(Fn, all_places<int64_t>));
    default:
      return run(TOMBOLO_TARGET(Fn, all_places<int64_t>), true);
  }
}

}  // namespace tombolo
#endif
