#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/image/resample.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/image/resample.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

/// Places of 16 results lie next to each other where an image grows: a few vectors are read and
/// their lanes distributed. Otherwise two neighbours are gathered as one number of 64 bits.
void row(const float* x, int64_t length, const int32_t* first, const float* weights, int64_t step,
         int64_t taps, int64_t n, float* y) {
  const F d;
  const hn::RebindToSigned<F> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto weight = [&](int64_t t, int64_t i)
                          HWY_ATTR { return hn::LoadU(d, weights + t * step + i); };
  if (n < lanes) {
    for (int64_t i = 0; i < n; ++i) {
      float sum = 0;
      for (int64_t t = 0; t < taps; ++t) sum += weights[t * step + i] * x[first[i] + t];
      y[i] = sum;
    }
    return;
  }
  // The last vector reaches back.
  for (int64_t begin = 0; begin < n; begin += lanes) {
    const int64_t i = std::min(begin, n - lanes);
    const auto places = hn::LoadU(di, first + i);
    const int64_t low = std::min(first[i], first[i + lanes - 1]),
                  high = std::max(first[i], first[i + lanes - 1]);
    V sum;
    if (high - low < lanes && low + taps - 1 + lanes <= length) {
      const auto lane =
          hn::IndicesFromVec(d, hn::Sub(places, hn::Set(di, static_cast<int32_t>(low))));
      sum = hn::Mul(weight(0, i), hn::TableLookupLanes(hn::LoadU(d, x + low), lane));
      for (int64_t t = 1; t < taps; ++t)
        sum = hn::MulAdd(weight(t, i), hn::TableLookupLanes(hn::LoadU(d, x + low + t), lane), sum);
#if HWY_TARGET == HWY_AVX3
    } else if (high - low < 4 * lanes && low + taps - 1 + 4 * lanes <= length) {
      // Four vectors to choose from, where an image shrinks by less than that.
      const auto lane = hn::Sub(places, hn::Set(di, static_cast<int32_t>(low))).raw;
      const __mmask16 upper = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(32));
      sum = hn::Zero(d);
      for (int64_t t = 0; t < taps; ++t) {
        const float* from = x + low + t;
        const auto at = [&](int64_t v) HWY_ATTR { return hn::LoadU(d, from + v * lanes).raw; };
        const __m512 value = _mm512_mask_blend_ps(upper, _mm512_permutex2var_ps(at(0), lane, at(1)),
                                                  _mm512_permutex2var_ps(at(2), lane, at(3)));
        sum = hn::MulAdd(weight(t, i), V{value}, sum);
      }
#endif
    } else {
      const hn::Repartition<int64_t, F> pair;
      const hn::Half<decltype(di)> half;
      const auto* from = reinterpret_cast<const int64_t*>(x);
      const auto offset = hn::ShiftLeft<2>(places);
      const auto low_half = hn::PromoteTo(pair, hn::LowerHalf(half, offset)),
                 high_half = hn::PromoteTo(pair, hn::UpperHalf(half, offset));
      sum = hn::Zero(d);
      int64_t t = 0;
      for (; t + 2 <= taps; t += 2) {
        const auto by = hn::Set(pair, 4 * t);
        const V a = hn::BitCast(d, hn::GatherOffset(pair, from, hn::Add(low_half, by))),
                b = hn::BitCast(d, hn::GatherOffset(pair, from, hn::Add(high_half, by)));
        sum = hn::MulAdd(weight(t, i), hn::ConcatEven(d, b, a), sum);
        sum = hn::MulAdd(weight(t + 1, i), hn::ConcatOdd(d, b, a), sum);
      }
      if (t < taps) sum = hn::MulAdd(weight(t, i), hn::GatherIndex(d, x + t, places), sum);
    }
    hn::StoreU(sum, d, y + i);
  }
}

void blend(const float* x, int64_t step, const float* weights, int64_t taps, int64_t n, float* y) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const V first = hn::Set(d, weights[0]);
    const auto at = [&](int64_t v) HWY_ATTR { return hn::LoadU(d, x + i + v * lanes); };
    V a = hn::Mul(first, at(0)), b = hn::Mul(first, at(1)), c = hn::Mul(first, at(2)),
      e = hn::Mul(first, at(3));
    for (int64_t t = 1; t < taps; ++t) {
      const V weight = hn::Set(d, weights[t]);
      const float* from = x + t * step + i;
      a = hn::MulAdd(weight, hn::LoadU(d, from), a);
      b = hn::MulAdd(weight, hn::LoadU(d, from + lanes), b);
      c = hn::MulAdd(weight, hn::LoadU(d, from + 2 * lanes), c);
      e = hn::MulAdd(weight, hn::LoadU(d, from + 3 * lanes), e);
    }
    hn::StoreU(a, d, y + i);
    hn::StoreU(b, d, y + i + lanes);
    hn::StoreU(c, d, y + i + 2 * lanes);
    hn::StoreU(e, d, y + i + 3 * lanes);
  }
  for (; i < n; i += lanes) {
    const int64_t left = n - i;
    V sum = hn::Mul(hn::Set(d, weights[0]), load_n(d, x + i, left));
    for (int64_t t = 1; t < taps; ++t)
      sum = hn::MulAdd(hn::Set(d, weights[t]), load_n(d, x + t * step + i, left), sum);
    store_n(sum, d, y + i, left);
  }
}

/// Places of a row whose elements are runs of `inner` numbers.
void places(const float* x, const int32_t* first, const float* weights, int64_t taps, int64_t n,
            int64_t inner, float* y) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (taps != 2 || inner % lanes != 0) {
    for (int64_t i = 0; i < n; ++i)
      blend(x + first[i] * inner, inner, weights + i * taps, taps, inner, y + i * inner);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const V low = hn::Set(d, weights[2 * i]), high = hn::Set(d, weights[2 * i + 1]);
    const float* from = x + first[i] * inner;
    float* to = y + i * inner;
    for (int64_t j = 0; j < inner; j += lanes)
      hn::StoreU(
          hn::MulAdd(high, hn::LoadU(d, from + inner + j), hn::Mul(low, hn::LoadU(d, from + j))), d,
          to + j);
  }
}

// Doubles: sums as the reference kernel takes them, one product after the other, since bytes that
// are made of them are cut off.

void exact_row(const double* x, int64_t length, const int32_t* first, const double* weights,
               int64_t step, int64_t taps, int64_t n, double* y) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<int32_t, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto places = hn::PromoteTo(di, hn::LoadU(narrow, first + i));
    const int64_t low = std::min(first[i], first[i + lanes - 1]),
                  high = std::max(first[i], first[i + lanes - 1]);
    const bool near = high - low < lanes && low + taps - 1 + lanes <= length;
    const auto lane =
        hn::IndicesFromVec(d, near ? hn::Sub(places, hn::Set(di, low)) : hn::Zero(di));
    auto sum = hn::Zero(d);
    for (int64_t t = 0; t < taps; ++t) {
      const auto value = near ? hn::TableLookupLanes(hn::LoadU(d, x + low + t), lane)
                              : hn::GatherIndex(d, x + t, places);
      sum = hn::Add(sum, hn::Mul(hn::LoadU(d, weights + t * step + i), value));
    }
    hn::StoreU(sum, d, y + i);
  }
  for (; i < n; ++i) {
    double sum = 0;
    for (int64_t t = 0; t < taps; ++t) sum += weights[t * step + i] * x[first[i] + t];
    y[i] = sum;
  }
}

void exact_blend(const double* x, int64_t step, const double* weights, int64_t taps, int64_t n,
                 double* y) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t t = 0; t < taps; ++t)
      sum = hn::Add(sum, hn::Mul(hn::Set(d, weights[t]), load_n(d, x + t * step + i, n - i)));
    store_n(sum, d, y + i, n - i);
  }
}

template <typename T>
void widen(const T* x, int64_t n, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<double>(x[i]);
}
template <typename T>
void cut_off(const double* x, int64_t n, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(static_cast<int32_t>(x[i]));
}

void twice(const uint32_t* x, int64_t n, uint32_t* y, uint32_t* again) {
  const hn::ScalableTag<uint32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    // Of each block of 128 bits the lower and the upper half doubled, then blocks in their order.
    const auto low = hn::InterleaveLower(d, v, v), high = hn::InterleaveUpper(d, v, v);
#if HWY_TARGET == HWY_AVX3
    const hn::Vec<decltype(d)> first{
        _mm512_permutex2var_epi64(low.raw, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), high.raw)},
        second{_mm512_permutex2var_epi64(low.raw, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4),
                                         high.raw)};
    hn::StoreU(first, d, y + 2 * i);
    hn::StoreU(second, d, y + 2 * i + lanes);
    if (again != nullptr) {
      hn::StoreU(first, d, again + 2 * i);
      hn::StoreU(second, d, again + 2 * i + lanes);
    }
#else
    (void)low, (void)high;
    hn::StoreInterleaved2(v, v, d, y + 2 * i);
    if (again != nullptr) hn::StoreInterleaved2(v, v, d, again + 2 * i);
#endif
  }
  for (; i < n; ++i) {
    y[2 * i] = y[2 * i + 1] = x[i];
    if (again != nullptr) again[2 * i] = again[2 * i + 1] = x[i];
  }
}

/// A vector of numbers at places that ascend: those within one are distributed from there.
HWY_INLINE void pick_vector(const uint32_t* x, int64_t length, const int32_t* from, uint32_t* y) {
  const hn::ScalableTag<uint32_t> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t low = from[0], span = from[lanes - 1] - low, left = length - low;
  const auto at = hn::LoadU(di, from), lane = hn::Sub(at, hn::Set(di, from[0]));
  if (span < lanes) {
    const auto near = load_n(d, x + low, left);
    hn::StoreU(hn::TableLookupLanes(near, hn::IndicesFromVec(d, lane)), d, y);
    return;
  }
#if HWY_TARGET == HWY_AVX3
  if (span < 2 * lanes) {
    const auto near = hn::LoadU(d, x + low), far = load_n(d, x + low + lanes, left - lanes);
    const hn::Vec<decltype(d)> v{_mm512_permutex2var_epi32(near.raw, lane.raw, far.raw)};
    hn::StoreU(v, d, y);
    return;
  }
#endif
#if HWY_TARGET <= HWY_AVX2
  const auto all = hn::GatherIndex(di, reinterpret_cast<const int32_t*>(x), at);
  hn::StoreU(hn::BitCast(d, all), d, y);
#else
  for (int64_t j = 0; j < lanes; ++j) y[j] = x[from[j]];
#endif
}
void pick(const uint32_t* x, int64_t length, const int32_t* from, int64_t n, uint32_t* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint32_t>()));
  int64_t i = 0;
  if (n < lanes) {
    for (; i < n; ++i) y[i] = x[from[i]];
    return;
  }
  // The last vector reaches back.
  for (; i < n; i += lanes) {
    const int64_t j = std::min(i, n - lanes);
    pick_vector(x, length, from + j, y + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void resample_row(const float* x, int64_t length, const int32_t* first, const float* weights,
                  int64_t step, int64_t taps, int64_t n, float* y) {
  TOMBOLO_TARGET(
      void(const float*, int64_t, const int32_t*, const float*, int64_t, int64_t, int64_t, float*),
      row)
  (x, length, first, weights, step, taps, n, y);
}
void blend_rows(const float* x, int64_t step, const float* weights, int64_t taps, int64_t n,
                float* y) {
  TOMBOLO_TARGET(void(const float*, int64_t, const float*, int64_t, int64_t, float*), blend)
  (x, step, weights, taps, n, y);
}
void blend_places(const float* x, const int32_t* first, const float* weights, int64_t taps,
                  int64_t n, int64_t inner, float* y) {
  TOMBOLO_TARGET(
      void(const float*, const int32_t*, const float*, int64_t, int64_t, int64_t, float*), places)
  (x, first, weights, taps, n, inner, y);
}

void resample_row(const double* x, int64_t length, const int32_t* first, const double* weights,
                  int64_t step, int64_t taps, int64_t n, double* y) {
  TOMBOLO_TARGET(void(const double*, int64_t, const int32_t*, const double*, int64_t, int64_t,
                      int64_t, double*),
                 exact_row)
  (x, length, first, weights, step, taps, n, y);
}
void blend_rows(const double* x, int64_t step, const double* weights, int64_t taps, int64_t n,
                double* y) {
  TOMBOLO_TARGET(void(const double*, int64_t, const double*, int64_t, int64_t, double*),
                 exact_blend)
  (x, step, weights, taps, n, y);
}
template <typename T>
void bytes_to_doubles(const T* x, int64_t n, double* y) {
  TOMBOLO_TARGET(void(const T*, int64_t, double*), widen<T>)(x, n, y);
}
template <typename T>
void doubles_to_bytes(const double* x, int64_t n, T* y) {
  TOMBOLO_TARGET(void(const double*, int64_t, T*), cut_off<T>)(x, n, y);
}
template void bytes_to_doubles(const uint8_t*, int64_t, double*);
template void bytes_to_doubles(const int8_t*, int64_t, double*);
template void doubles_to_bytes(const double*, int64_t, uint8_t*);
template void doubles_to_bytes(const double*, int64_t, int8_t*);

void pick_row(const uint32_t* x, int64_t length, const int32_t* from, int64_t n, uint32_t* y) {
  TOMBOLO_TARGET(void(const uint32_t*, int64_t, const int32_t*, int64_t, uint32_t*), pick)
  (x, length, from, n, y);
}
void double_row(const uint32_t* x, int64_t n, uint32_t* y, uint32_t* again) {
  TOMBOLO_TARGET(void(const uint32_t*, int64_t, uint32_t*, uint32_t*), twice)(x, n, y, again);
}

}  // namespace tombolo
#endif
