#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/tensor/lookup.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/tensor/lookup.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename I>
bool offsets_of(const I* index, int64_t n, int64_t length, int64_t step, int64_t stride,
                int32_t* offsets) {
  const hn::ScalableTag<I> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), size = hn::Set(d, static_cast<I>(length)),
             last = hn::Set(d, static_cast<I>(length - 1));
  const auto by = hn::Set(di, static_cast<int32_t>(stride));
  const auto more = hn::Set(di, static_cast<int32_t>(lanes * step));
  auto first = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(step)));
  // A sign of a place, or of what it is from the last one, says that it is outside.
  auto signs = zero;
  for (int64_t i = 0; i < n; i += lanes) {
    auto place = load_n(d, index + i, n - i);
    place = hn::Add(place, hn::IfThenElseZero(hn::Lt(place, zero), size));
    signs = hn::Or(signs, hn::Or(place, hn::Sub(last, place)));
    hn::Vec<decltype(di)> offset;
    if constexpr (sizeof(I) == 8) {
      const hn::Rebind<uint32_t, decltype(d)> du;
      const auto bits = hn::BitCast(hn::RebindToUnsigned<decltype(d)>(), place);
      offset = hn::BitCast(di, hn::TruncateTo(du, bits));
    } else {
      offset = place;
    }
    if (stride != 1) offset = hn::Mul(offset, by);
    store_n(hn::Add(offset, first), di, offsets + i, n - i);
    first = hn::Add(first, more);
  }
  return hn::AllFalse(d, hn::Lt(signs, zero));
}

/// Neither a place nor what it is from the last one may have a sign.
template <typename I>
bool all_inside(const I* index, int64_t n, int64_t length) {
  const hn::ScalableTag<I> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto last = hn::Set(d, static_cast<I>(length - 1));
  auto a = hn::Zero(d), b = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto v = hn::LoadU(d, index + i), w = hn::LoadU(d, index + i + lanes);
    a = hn::Or(a, hn::Or(v, hn::Sub(last, v)));
    b = hn::Or(b, hn::Or(w, hn::Sub(last, w)));
  }
  bool inside = hn::AllFalse(d, hn::Lt(hn::Or(a, b), hn::Zero(d)));
  for (; i < n; ++i) inside = inside && index[i] >= 0 && index[i] < length;
  return inside;
}

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

void blend(const float* from, const int32_t* offsets, const float* weights, int64_t taps, int64_t n,
           float* out) {
  const F f;
  const hn::RebindToSigned<F> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    V sum = hn::Zero(f);
    for (int64_t t = 0; t < taps; ++t) {
      const V weight = load_n(f, weights + t * n + i, left);
      const V value = hn::GatherIndex(f, from, load_n(di, offsets + t * n + i, left));
      sum = hn::IfThenElse(hn::Eq(weight, hn::Zero(f)), sum, hn::MulAdd(weight, value, sum));
    }
    store_n(sum, f, out + i, left);
  }
}

void rows_at(const float* from, const int32_t* rows, const float* weights, int64_t taps, int64_t n,
             float* out) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    const float* first = from + rows[0] * n + j;
    const V w0 = hn::Set(f, weights[0]);
    V s0 = hn::Mul(w0, hn::LoadU(f, first)), s1 = hn::Mul(w0, hn::LoadU(f, first + lanes));
    for (int64_t t = 1; t < taps; ++t) {
      const float* row = from + rows[t] * n + j;
      const V w = hn::Set(f, weights[t]);
      s0 = hn::MulAdd(w, hn::LoadU(f, row), s0);
      s1 = hn::MulAdd(w, hn::LoadU(f, row + lanes), s1);
    }
    hn::StoreU(s0, f, out + j);
    hn::StoreU(s1, f, out + j + lanes);
  }
  for (; j < n; j += lanes) {
    V sum = hn::Mul(hn::Set(f, weights[0]), load_n(f, from + rows[0] * n + j, n - j));
    for (int64_t t = 1; t < taps; ++t)
      sum = hn::MulAdd(hn::Set(f, weights[t]), load_n(f, from + rows[t] * n + j, n - j), sum);
    store_n(sum, f, out + j, n - j);
  }
}

template <bool kInclusive, bool kGreater>
int64_t beyond(const float* x, int64_t n, float limit, int32_t* places) {
  const F f;
  const hn::RebindToSigned<F> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V bound = hn::Set(f, limit);
  const auto found = [&](V v, int64_t i, int64_t left, int64_t count) HWY_ATTR {
    const V low = kGreater ? v : bound, high = kGreater ? bound : v;
    auto mask = hn::Not(kInclusive ? hn::Lt(low, high) : hn::Le(low, high));
    if (left < lanes) mask = hn::And(mask, hn::FirstN(f, static_cast<size_t>(left)));
    if (hn::AllFalse(f, mask)) return count;
    // Storing while compressing takes Zen 4 a hundred cycles.
    const auto where = hn::RebindMask(di, mask);
    hn::StoreU(hn::Compress(hn::Iota(di, static_cast<int32_t>(i)), where), di, places + count);
    return count + static_cast<int64_t>(hn::CountTrue(di, where));
  };
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += lanes) count = found(load_n(f, x + i, n - i), i, n - i, count);
  return count;
}
int64_t beyond_any(const float* x, int64_t n, float limit, bool inclusive, bool greater,
                   int32_t* places) {
  if (inclusive)
    return greater ? beyond<true, true>(x, n, limit, places)
                   : beyond<true, false>(x, n, limit, places);
  return greater ? beyond<false, true>(x, n, limit, places)
                 : beyond<false, false>(x, n, limit, places);
}

template <bool kGreater, typename T>
int64_t next_beyond(const T* x, int64_t i, int64_t n, T limit) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bound = hn::Set(d, limit);
  const auto beyond = [&](int64_t at) HWY_ATTR {
    const auto v = hn::LoadU(d, x + at), low = kGreater ? v : bound, high = kGreater ? bound : v;
    if constexpr (hwy::IsFloat<T>())
      return hn::Not(hn::Le(low, high));
    else
      return hn::Gt(low, high);
  };
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    if (!hn::AllFalse(d, hn::Or(hn::Or(beyond(i), beyond(i + lanes)),
                                hn::Or(beyond(i + 2 * lanes), beyond(i + 3 * lanes)))))
      break;
  for (; i + lanes <= n; i += lanes)
    if (!hn::AllFalse(d, beyond(i))) break;
  while (i < n && (kGreater ? x[i] <= limit : x[i] >= limit)) ++i;
  return i;
}
template <typename T>
int64_t next_beyond_any(const T* x, int64_t i, int64_t n, T limit, bool greater) {
  return greater ? next_beyond<true>(x, i, n, limit) : next_beyond<false>(x, i, n, limit);
}

/// The greatest numbers of some dozen groups: the k-th of them is no greater than the k-th of all.
template <bool kGreatest, typename T>
T kth_of_groups(const T* x, int64_t n, int64_t k) {
  const hn::ScalableTag<T> d;
  using W = hn::Vec<decltype(d)>;
  using Limits = std::numeric_limits<T>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto better = [](W v, W best) HWY_ATTR {
    if constexpr (hwy::IsFloat<T>())
      return kGreatest ? max_of(v, best) : min_of(v, best);
    else
      return kGreatest ? max_of(v, best) : min_of(v, best);
  };
  constexpr T kLow = Limits::has_infinity ? -Limits::infinity() : Limits::lowest(),
              kHigh = Limits::has_infinity ? Limits::infinity() : Limits::max();
  constexpr T kWorst = kGreatest ? kLow : kHigh, kBest = kGreatest ? kHigh : kLow;
  W a = hn::Set(d, kWorst), b = a, c = a, e = a;
  for (int64_t i = 0; i + 4 * lanes <= n; i += 4 * lanes) {
    a = better(hn::LoadU(d, x + i), a);
    b = better(hn::LoadU(d, x + i + lanes), b);
    c = better(hn::LoadU(d, x + i + 2 * lanes), c);
    e = better(hn::LoadU(d, x + i + 3 * lanes), e);
  }
  int64_t groups = 4 * lanes;
  if (k <= lanes) {
    a = better(a, c);
    b = better(b, e);
    groups = 2 * lanes;
  }
  HWY_ALIGN T best[4 * HWY_LANES(T)];
  hn::Store(a, d, best);
  hn::Store(b, d, best + lanes);
  hn::Store(c, d, best + 2 * lanes);
  hn::Store(e, d, best + 3 * lanes);
  if (k > groups) return kWorst;
  T result = kBest;
  for (int64_t i = 0; i < groups; ++i) {
    const W one = hn::Set(d, best[i]);
    size_t ahead = 0;
    for (int64_t j = 0; j < groups; j += lanes) {
      const W other = hn::Load(d, best + j);
      ahead += hn::CountTrue(d, kGreatest ? hn::Gt(other, one) : hn::Lt(other, one));
    }
    const T value = static_cast<int64_t>(ahead) < k ? best[i] : kBest;
    result = kGreatest ? std::min(result, value) : std::max(result, value);
  }
  return result;
}
template <typename T>
T kth_bound(const T* x, int64_t n, int64_t k, bool greatest) {
  return greatest ? kth_of_groups<true>(x, n, k) : kth_of_groups<false>(x, n, k);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename I>
bool place_offsets(const I* index, int64_t n, int64_t length, int64_t step, int64_t stride,
                   int32_t* offsets) {
  return TOMBOLO_TARGET(bool(const I*, int64_t, int64_t, int64_t, int64_t, int32_t*),
                        offsets_of<I>)(index, n, length, step, stride, offsets);
}
template bool place_offsets(const int32_t*, int64_t, int64_t, int64_t, int64_t, int32_t*);
template bool place_offsets(const int64_t*, int64_t, int64_t, int64_t, int64_t, int32_t*);
template <typename I>
bool all_places_inside(const I* index, int64_t n, int64_t length) {
  return TOMBOLO_TARGET(bool(const I*, int64_t, int64_t), all_inside<I>)(index, n, length);
}
template bool all_places_inside(const int32_t*, int64_t, int64_t);
template bool all_places_inside(const int64_t*, int64_t, int64_t);
void blend_places(const float* from, const int32_t* offsets, const float* weights, int64_t taps,
                  int64_t n, float* out) {
  TOMBOLO_TARGET(void(const float*, const int32_t*, const float*, int64_t, int64_t, float*), blend)
  (from, offsets, weights, taps, n, out);
}
void blend_rows_at(const float* from, const int32_t* rows, const float* weights, int64_t taps,
                   int64_t n, float* out) {
  using Fn = void(const float*, const int32_t*, const float*, int64_t, int64_t, float*);
  TOMBOLO_TARGET(Fn, rows_at)(from, rows, weights, taps, n, out);
}
int64_t places_beyond(const float* x, int64_t n, float limit, bool inclusive, bool greater,
                      int32_t* places) {
  return TOMBOLO_TARGET(int64_t(const float*, int64_t, float, bool, bool, int32_t*), beyond_any)(
      x, n, limit, inclusive, greater, places);
}
template <typename T>
int64_t first_beyond(const T* x, int64_t i, int64_t n, T limit, bool greater) {
  return TOMBOLO_TARGET(int64_t(const T*, int64_t, int64_t, T, bool), next_beyond_any<T>)(
      x, i, n, limit, greater);
}
template int64_t first_beyond(const double*, int64_t, int64_t, double, bool);
template int64_t first_beyond(const int32_t*, int64_t, int64_t, int32_t, bool);
template int64_t first_beyond(const int64_t*, int64_t, int64_t, int64_t, bool);
template <typename T>
T bound_of_best(const T* x, int64_t n, int64_t k, bool greatest) {
  return TOMBOLO_TARGET(T(const T*, int64_t, int64_t, bool), kth_bound<T>)(x, n, k, greatest);
}
template float bound_of_best(const float*, int64_t, int64_t, bool);
template double bound_of_best(const double*, int64_t, int64_t, bool);
template int32_t bound_of_best(const int32_t*, int64_t, int64_t, bool);
template int64_t bound_of_best(const int64_t*, int64_t, int64_t, bool);

}  // namespace tombolo
#endif
