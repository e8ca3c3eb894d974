#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/scan.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/ivdep.h"
#include "runtime/kernels/scan.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What T is summed in: integers wrap.
template <typename T>
using Sum = typename std::conditional_t<
    std::is_floating_point_v<T>, std::type_identity<double>,
    std::make_unsigned<std::conditional_t<std::is_integral_v<T>, T, int32_t>>>::type;

/// Columns of floats: vectors of sums stay in registers on their way down.
void float_sums_down(const float* x, int64_t n, int64_t step, int64_t width, bool exclusive,
                     bool reverse, float* y) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> f;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t by = reverse ? -step : step, start = reverse ? (n - 1) * step : 0;
  const auto walk = [&]<int kVectors>(int64_t j) HWY_ATTR {
    V sums[kVectors];
    for (V& sum : sums) sum = hn::Zero(d);
    for (int64_t i = 0, at = start + j; i < n; ++i, at += by)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const V value = hn::PromoteTo(d, hn::LoadU(f, x + at + v * lanes));
        const V next = hn::Add(sums[v], value);
        hn::StoreU(hn::DemoteTo(f, exclusive ? sums[v] : next), f, y + at + v * lanes);
        sums[v] = next;
      }
  };
  int64_t j = 0;
  for (; j + 8 * lanes <= width; j += 8 * lanes) walk.template operator()<8>(j);
  for (; j + 2 * lanes <= width; j += 2 * lanes) walk.template operator()<2>(j);
  for (; j < width; j += lanes) {
    V sum = hn::Zero(d);
    for (int64_t i = 0, at = start + j; i < n; ++i, at += by) {
      const V next = hn::Add(sum, hn::PromoteTo(d, load_n(f, x + at, width - j)));
      store_n(hn::DemoteTo(f, exclusive ? sum : next), f, y + at, width - j);
      sum = next;
    }
  }
}

/// Columns side by side: the compiler makes vectors of the inner loops.
template <typename T>
void sums_down(const T* x, int64_t n, int64_t step, int64_t width, bool exclusive, bool reverse,
               T* y) {
  if constexpr (std::is_same_v<T, float>)
    return float_sums_down(x, n, step, width, exclusive, reverse, y);
  constexpr int64_t kLines = 64;
  for (int64_t j = 0; j < width; j += kLines) {
    const int64_t count = std::min(kLines, width - j);
    Sum<T> sums[kLines] = {};
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = (reverse ? n - 1 - i : i) * step + j;
      const T* from = x + at;
      T* to = y + at;
      const auto walk = [&](int64_t lines) HWY_ATTR {
        if (exclusive) {
          TOMBOLO_IVDEP
          for (int64_t k = 0; k < lines; ++k) {
            const T value = from[k];
            to[k] = static_cast<T>(sums[k]);
            sums[k] += static_cast<Sum<T>>(value);
          }
        } else {
          TOMBOLO_IVDEP
          for (int64_t k = 0; k < lines; ++k) {
            sums[k] += static_cast<Sum<T>>(from[k]);
            to[k] = static_cast<T>(sums[k]);
          }
        }
      };
      if (count == kLines)
        walk(kLines);
      else
        walk(count);
    }
  }
}

/// v with each lane `kBy` lanes further on, zeros behind.
template <int kBy, bool kReverse, class D, class V>
HWY_INLINE V moved_on(D d, V v) {
  const hn::RebindToSigned<D> di;
  using I = hn::TFromD<decltype(di)>;
  const size_t lanes = hn::Lanes(d);
  if constexpr (kReverse) {
    const auto last = hn::Set(di, static_cast<I>(lanes - 1));
    const auto from = hn::IndicesFromVec(d, hn::Min(last, hn::Iota(di, kBy)));
    return hn::IfThenElseZero(hn::FirstN(d, lanes - kBy), hn::TableLookupLanes(v, from));
  }
  const auto from = hn::IndicesFromVec(d, hn::Max(hn::Zero(di), hn::Iota(di, -kBy)));
  return hn::IfThenZeroElse(hn::FirstN(d, kBy), hn::TableLookupLanes(v, from));
}

/// The sums of each lane and those before it.
template <bool kReverse, class D, class V>
HWY_INLINE V sums_of_lanes(D d, V v) {
  v = hn::Add(v, moved_on<1, kReverse>(d, v));
  if constexpr (hn::MaxLanes(D()) > 2) v = hn::Add(v, moved_on<2, kReverse>(d, v));
  if constexpr (hn::MaxLanes(D()) > 4) v = hn::Add(v, moved_on<4, kReverse>(d, v));
  if constexpr (hn::MaxLanes(D()) > 8) v = hn::Add(v, moved_on<8, kReverse>(d, v));
  return v;
}

/// A vector at a time, so that sums wait for one addition a vector. A reversed row is taken from
/// its end; its last vector is the short one at its beginning.
template <bool kExclusive, bool kReverse, typename T>
void sums_of_rows(const T* x, int64_t rows, int64_t n, T* y) {
  using S = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  const hn::ScalableTag<S> d;
  const hn::Rebind<T, hn::ScalableTag<S>> narrow;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::IndicesFromVec(d, hn::Set(di, kReverse ? I{0} : static_cast<I>(lanes - 1)));
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    V before = hn::Zero(d);
    for (int64_t done = 0; done < n; done += lanes) {
      const int64_t left = std::min(n - done, lanes), at = kReverse ? n - done - left : done;
      V v;
      if constexpr (std::is_same_v<T, S>)
        v = load_n(d, x + at, left);
      else
        v = hn::PromoteTo(d, load_n(narrow, x + at, left));
      const V inside = sums_of_lanes<kReverse>(d, v);
      const V sums = hn::Add(before, kExclusive ? moved_on<1, kReverse>(d, inside) : inside);
      before = hn::Add(before, hn::TableLookupLanes(inside, all));
      if constexpr (std::is_same_v<T, S>)
        store_n(sums, d, y + at, left);
      else
        store_n(hn::DemoteTo(narrow, sums), narrow, y + at, left);
    }
  }
}
template <typename T>
void sums_along(const T* x, int64_t rows, int64_t n, bool exclusive, bool reverse, T* y) {
  if (exclusive)
    return reverse ? sums_of_rows<true, true>(x, rows, n, y)
                   : sums_of_rows<true, false>(x, rows, n, y);
  return reverse ? sums_of_rows<false, true>(x, rows, n, y)
                 : sums_of_rows<false, false>(x, rows, n, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void running_sums(const T* x, int64_t n, int64_t step, int64_t width, bool exclusive, bool reverse,
                  T* y) {
  TOMBOLO_TARGET(void(const T*, int64_t, int64_t, int64_t, bool, bool, T*), sums_down<T>)
  (x, n, step, width, exclusive, reverse, y);
}
template <typename T>
void running_rows(const T* x, int64_t rows, int64_t n, bool exclusive, bool reverse, T* y) {
  TOMBOLO_TARGET(void(const T*, int64_t, int64_t, bool, bool, T*), sums_along<T>)
  (x, rows, n, exclusive, reverse, y);
}
#define TOMBOLO_SCAN(T)                                                            \
  template void running_sums(const T*, int64_t, int64_t, int64_t, bool, bool, T*); \
  template void running_rows(const T*, int64_t, int64_t, bool, bool, T*);
TOMBOLO_SCAN(float)
TOMBOLO_SCAN(double)
TOMBOLO_SCAN(int32_t)
TOMBOLO_SCAN(int64_t)
#undef TOMBOLO_SCAN

}  // namespace tombolo
#endif
