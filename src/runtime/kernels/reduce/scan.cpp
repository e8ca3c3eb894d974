#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/reduce/scan.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/reduce/scan.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Up to a vector of numbers as those they are summed as, and back.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load_summands(D d, const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>)
    return load_n(d, x, n);
  else
    return hn::PromoteTo(d, load_n(hn::Rebind<T, D>(), x, n));
}
template <class D, typename T>
HWY_INLINE void store_sums(hn::Vec<D> sums, D d, T* y, int64_t n) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    store_n(sums, d, y, n);
  } else {
    const hn::Rebind<T, D> narrow;
    store_n(hn::DemoteTo(narrow, sums), narrow, y, n);
  }
}

constexpr int64_t kColumns = 1024, kVectors = 8, kShortRow = 2048, kSomeRows = 4;

/// Columns side by side. Some rows of all columns at a time, as they lie in memory: on their way
/// down these the sums of some vectors stay in registers: all the way down if kOnce.
template <bool kExclusive, bool kReverse, bool kOnce, typename T>
void sums_of_columns(const T* x, int64_t n, int64_t step, int64_t width, T* y) {
  using S = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  const hn::ScalableTag<S> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN S sums[kColumns + HWY_LANES(S)];
  const int64_t by = kReverse ? -step : step, start = kReverse ? (n - 1) * step : 0;
  const auto add = [&](V& sum, int64_t at, int64_t left) HWY_ATTR {
    const V v = load_summands(d, x + at, left);
    const V next = hn::Add(sum, v), given = kExclusive ? sum : next;
    sum = next;
    store_sums(given, d, y + at, left);
  };
  for (int64_t first = 0; first < width; first += kColumns) {
    const int64_t count = std::min(kColumns, width - first);
    // Short rows as they come: what is read ahead goes on in their order.
    const bool is_short = count * static_cast<int64_t>(sizeof(T)) < kShortRow;
    const int64_t some = kOnce ? n : is_short ? 1 : kSomeRows;
    if (!kOnce) std::fill_n(sums, count + lanes, S{0});
    for (int64_t row = 0; row < n; row += some) {
      const int64_t rows = std::min(some, n - row), top = start + row * by + first;
      // Backwards within rows too: memory is read ahead in one direction.
      const int64_t groups = count / (kVectors * lanes);
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t j = (kReverse ? groups - 1 - g : g) * kVectors * lanes;
        V sum[kVectors];
#pragma GCC unroll 8
        for (int64_t v = 0; v < kVectors; ++v)
          sum[v] = kOnce ? hn::Zero(d) : hn::Load(d, sums + j + v * lanes);
        for (int64_t i = 0, at = top + j; i < rows; ++i, at += by) {
#pragma GCC unroll 8
          for (int64_t w = 0; w < kVectors; ++w) {
            const int64_t v = kReverse ? kVectors - 1 - w : w;
            add(sum[v], at + v * lanes, lanes);
          }
        }
        if (kOnce) continue;
#pragma GCC unroll 8
        for (int64_t v = 0; v < kVectors; ++v) hn::Store(sum[v], d, sums + j + v * lanes);
      }
      int64_t j = groups * kVectors * lanes;
      // The rest, some vectors at a time: with AVX2 a store under a mask is slower than its
      // elements.
      constexpr bool kMasks = HWY_TARGET <= HWY_AVX3;
      const auto beside = [&]<int64_t kSome>() HWY_ATTR {
        V sum[kSome];
        const int64_t left = count - j - (kSome - 1) * lanes;
#pragma GCC unroll 4
        for (int64_t v = 0; v < kSome; ++v)
          sum[v] = kOnce ? hn::Zero(d) : hn::Load(d, sums + j + v * lanes);
        for (int64_t i = 0, at = top + j; i < rows; ++i, at += by) {
#pragma GCC unroll 4
          for (int64_t v = 0; v + 1 < kSome; ++v) add(sum[v], at + v * lanes, lanes);
          add(sum[kSome - 1], at + (kSome - 1) * lanes, left);
        }
        if (!kOnce) {
#pragma GCC unroll 4
          for (int64_t v = 0; v < kSome; ++v) hn::Store(sum[v], d, sums + j + v * lanes);
        }
        j += kSome * lanes;
      };
      while (j + (kMasks ? 1 : lanes) <= count) {
        const int64_t vectors = (count - j + (kMasks ? lanes - 1 : 0)) / lanes;
        if (vectors >= 4)
          beside.template operator()<4>();
        else if (vectors == 3)
          beside.template operator()<3>();
        else if (vectors == 2)
          beside.template operator()<2>();
        else
          beside.template operator()<1>();
      }
      if (kOnce) std::fill_n(sums + j, count - j, S{0});
      for (int64_t i = 0, at = top; i < rows && j < count; ++i, at += by)
        for (int64_t k = j; k < count; ++k) {
          const S next = sums[k] + static_cast<S>(x[at + k]);
          y[at + k] = static_cast<T>(kExclusive ? sums[k] : next);
          sums[k] = next;
        }
    }
  }
}

/// Blocks of n rows of few columns, several rows to a vector.
template <bool kExclusive, bool kReverse, typename T>
void sums_of_few_columns(const T* x, int64_t blocks, int64_t n, int64_t width, T* y) {
  using S = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  const hn::ScalableTag<S> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t rows = std::min(n, lanes / width);
  // Each lane of the row `by` rows before, in the direction of the sums.
  struct Moved {
    decltype(hn::IndicesFromVec(d, hn::Zero(di))) from;
    hn::Mask<decltype(d)> inside;
  };
  const auto moved = [&](int64_t by) HWY_ATTR {
    HWY_ALIGN I from[HWY_LANES(S)], inside[HWY_LANES(S)];
    for (int64_t i = 0; i < lanes; ++i) {
      const int64_t row = i / width + (kReverse ? by : -by);
      inside[i] = row >= 0 && row < rows && i < rows * width;
      from[i] = static_cast<I>(inside[i] ? row * width + i % width : 0);
    }
    return Moved{hn::IndicesFromVec(d, hn::Load(di, from)),
                 hn::RebindMask(d, hn::Ne(hn::Load(di, inside), hn::Zero(di)))};
  };
  const auto move = [&](V v, const Moved& by) HWY_ATTR {
    return hn::IfThenElseZero(by.inside, hn::TableLookupLanes(v, by.from));
  };
  const Moved by1 = moved(1), by2 = moved(2), by4 = moved(4);
  HWY_ALIGN I last[HWY_LANES(S)];
  for (int64_t i = 0; i < lanes; ++i)
    last[i] = static_cast<I>((kReverse ? 0 : (rows - 1) * width) + i % width);
  const auto ends = hn::IndicesFromVec(d, hn::Load(di, last));
  for (int64_t b = 0; b < blocks; ++b, x += n * width, y += n * width) {
    V before = hn::Zero(d);
    for (int64_t done = 0; done < n; done += rows) {
      const int64_t some = std::min(n - done, rows);
      const int64_t at = (kReverse ? n - done - some : done) * width, count = some * width;
      V v = load_summands(d, x + at, count);
      v = hn::Add(v, move(v, by1));
      if (rows > 2) v = hn::Add(v, move(v, by2));
      if (rows > 4) v = hn::Add(v, move(v, by4));
      const V sums = hn::Add(before, kExclusive ? move(v, by1) : v);
      before = hn::Add(before, hn::TableLookupLanes(v, ends));
      store_sums(sums, d, y + at, count);
    }
  }
}

template <typename T>
int64_t sum_lanes() {
  using S = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<S>()));
}

/// Whether several rows of so many columns fit a vector of sums.
template <typename T>
bool few_columns(int64_t width) {
  const int64_t lanes = sum_lanes<T>();
  // Masked stores are slow before AVX-512; more than eight rows take a step more.
  return HWY_TARGET <= HWY_AVX3 && 2 * width <= lanes && lanes <= 8 * width;
}

/// Integers wrap.
template <typename T>
void sums_down(const T* x, int64_t blocks, int64_t n, int64_t step, int64_t width, bool exclusive,
               bool reverse, T* y) {
  using U = typename std::conditional_t<
      std::is_floating_point_v<T>, std::type_identity<T>,
      std::make_unsigned<std::conditional_t<std::is_integral_v<T>, T, int>>>::type;
  const U* from = reinterpret_cast<const U*>(x);
  U* to = reinterpret_cast<U*>(y);
  const auto by_kind = [&]<bool kExclusive, bool kReverse>() {
    if (step == width && few_columns<U>(width))
      return sums_of_few_columns<kExclusive, kReverse>(from, blocks, n, width, to);
    const bool once = n <= kSomeRows || width <= kVectors * sum_lanes<U>();
    // Backwards from block to block too.
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t at = (kReverse ? blocks - 1 - b : b) * n * step;
      if (once)
        sums_of_columns<kExclusive, kReverse, true>(from + at, n, step, width, to + at);
      else
        sums_of_columns<kExclusive, kReverse, false>(from + at, n, step, width, to + at);
    }
  };
  if (exclusive)
    return reverse ? by_kind.template operator()<true, true>()
                   : by_kind.template operator()<true, false>();
  return reverse ? by_kind.template operator()<false, true>()
                 : by_kind.template operator()<false, false>();
}

/// v with each lane `kBy` lanes further on, zeros behind.
template <int kBy, bool kReverse, class D, class V>
HWY_INLINE V moved_on(D d, V v) {
  const hn::RebindToSigned<D> di;
  using I = hn::TFromD<decltype(di)>;
  const size_t lanes = hn::Lanes(d);
  if constexpr (kReverse) {
    const auto last = hn::Set(di, static_cast<I>(lanes - 1));
    const auto from = hn::IndicesFromVec(d, min_of(last, hn::Iota(di, kBy)));
    return hn::IfThenElseZero(hn::FirstN(d, lanes - kBy), hn::TableLookupLanes(v, from));
  }
  const auto from = hn::IndicesFromVec(d, max_of(hn::Zero(di), hn::Iota(di, -kBy)));
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
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::IndicesFromVec(d, hn::Set(di, kReverse ? I{0} : static_cast<I>(lanes - 1)));
  // Backwards from row to row too: memory is read ahead in one direction.
  const int64_t by = kReverse ? -n : n;
  if (kReverse) {
    x += (rows - 1) * n;
    y += (rows - 1) * n;
  }
  for (int64_t r = 0; r < rows; ++r, x += by, y += by) {
    V before = hn::Zero(d);
    for (int64_t done = 0; done < n; done += lanes) {
      const int64_t left = std::min(n - done, lanes), at = kReverse ? n - done - left : done;
      V v = load_summands(d, x + at, left);
      const V inside = sums_of_lanes<kReverse>(d, v);
      const V sums = hn::Add(before, kExclusive ? moved_on<1, kReverse>(d, inside) : inside);
      before = hn::Add(before, hn::TableLookupLanes(inside, all));
      store_sums(sums, d, y + at, left);
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
void running_sums(const T* x, int64_t blocks, int64_t n, int64_t step, int64_t width,
                  bool exclusive, bool reverse, T* y) {
  TOMBOLO_TARGET(void(const T*, int64_t, int64_t, int64_t, int64_t, bool, bool, T*), sums_down<T>)
  (x, blocks, n, step, width, exclusive, reverse, y);
}
template <typename T>
void running_rows(const T* x, int64_t rows, int64_t n, bool exclusive, bool reverse, T* y) {
  TOMBOLO_TARGET(void(const T*, int64_t, int64_t, bool, bool, T*), sums_along<T>)
  (x, rows, n, exclusive, reverse, y);
}
#define TOMBOLO_SCAN(T)                                                                     \
  template void running_sums(const T*, int64_t, int64_t, int64_t, int64_t, bool, bool, T*); \
  template void running_rows(const T*, int64_t, int64_t, bool, bool, T*);
TOMBOLO_SCAN(float)
TOMBOLO_SCAN(double)
TOMBOLO_SCAN(int32_t)
TOMBOLO_SCAN(int64_t)
#undef TOMBOLO_SCAN

}  // namespace tombolo
#endif
