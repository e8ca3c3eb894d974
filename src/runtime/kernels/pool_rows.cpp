#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/pool_rows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/pool_rows.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <PoolFold kFold, class V>
HWY_INLINE V first_of(V x) {
  if constexpr (kFold == PoolFold::kSumSquare) return hn::Mul(x, x);
  if constexpr (kFold == PoolFold::kSumMagnitude) return hn::Abs(x);
  return x;
}
template <PoolFold kFold, class D, class V>
HWY_INLINE V fold_in(D, V sum, V x) {
  if constexpr (kFold == PoolFold::kMax) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>())
      return hn::IfThenElse(hn::Or(hn::IsNaN(sum), hn::Lt(x, sum)), sum, x);
    else
      return hn::Max(sum, x);
  }
  if constexpr (kFold == PoolFold::kSum) return hn::Add(sum, x);
  if constexpr (kFold == PoolFold::kSumSquare) return hn::MulAdd(x, x, sum);
  if constexpr (kFold == PoolFold::kSumMagnitude) return hn::Add(sum, hn::Abs(x));
}

template <PoolFold kFold, typename T>
void rows_of(const T* const* rows, int64_t count, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    auto sum = first_of<kFold>(load_n(d, rows[0] + i, left));
    for (int64_t r = 1; r < count; ++r) sum = fold_in<kFold>(d, sum, load_n(d, rows[r] + i, left));
    store_n(sum, d, out + i, left);
  }
}

template <PoolFold kFold, typename T>
void neighbours_of(const T* x, int64_t taps, int64_t stride, int64_t dilation, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (stride == 1) {
    for (; i < n; i += lanes) {
      const int64_t left = n - i;
      auto sum = load_n(d, x + i, left);
      for (int64_t k = 1; k < taps; ++k)
        sum = fold_in<kFold>(d, sum, load_n(d, x + i + k * dilation, left));
      store_n(sum, d, out + i, left);
    }
    return;
  }
  if (stride == 2 && sizeof(T) == 4) {
    // Pairs of taps: even and odd elements apart.
    for (; i + lanes <= n; i += lanes) {
      auto sum = hn::Zero(d);
      for (int64_t k = 0; k < taps; ++k) {
        const T* from = x + 2 * i + k * dilation;
        const auto low = hn::LoadU(d, from), high = hn::LoadU(d, from + lanes);
        const auto value = hn::ConcatEven(d, high, low);
        if (k + 1 < taps && dilation == 1) {
          const auto odd = hn::ConcatOdd(d, high, low);
          sum = k == 0 ? fold_in<kFold>(d, value, odd)
                       : fold_in<kFold>(d, fold_in<kFold>(d, sum, value), odd);
          ++k;
        } else {
          sum = k == 0 ? value : fold_in<kFold>(d, sum, value);
        }
      }
      hn::StoreU(sum, d, out + i);
    }
  }
  for (; i < n; ++i) {
    T sum = x[i * stride];
    for (int64_t k = 1; k < taps; ++k) {
      const T value = x[i * stride + k * dilation];
      if constexpr (kFold == PoolFold::kMax)
        sum = sum != sum || value < sum ? sum : value;
      else
        sum = static_cast<T>(sum + value);
    }
    out[i] = sum;
  }
}

template <typename T>
void rows_any(PoolFold fold, const T* const* rows, int64_t count, int64_t n, T* out) {
  if (fold == PoolFold::kMax) return rows_of<PoolFold::kMax>(rows, count, n, out);
  if constexpr (std::is_same_v<T, float>) {
    if (fold == PoolFold::kSum) return rows_of<PoolFold::kSum>(rows, count, n, out);
    if (fold == PoolFold::kSumSquare) return rows_of<PoolFold::kSumSquare>(rows, count, n, out);
    return rows_of<PoolFold::kSumMagnitude>(rows, count, n, out);
  }
}
template <typename T>
void neighbours_any(PoolFold fold, const T* x, int64_t taps, int64_t stride, int64_t dilation,
                    int64_t n, T* out) {
  if (fold == PoolFold::kMax)
    return neighbours_of<PoolFold::kMax>(x, taps, stride, dilation, n, out);
  if constexpr (std::is_same_v<T, float>)
    neighbours_of<PoolFold::kSum>(x, taps, stride, dilation, n, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void pool_rows(PoolFold fold, const T* const* rows, int64_t count, int64_t n, T* out) {
  TOMBOLO_TARGET(void(PoolFold, const T* const*, int64_t, int64_t, T*), rows_any<T>)
  (fold, rows, count, n, out);
}
template <typename T>
void pool_neighbours(PoolFold fold, const T* x, int64_t taps, int64_t stride, int64_t dilation,
                     int64_t n, T* out) {
  TOMBOLO_TARGET(void(PoolFold, const T*, int64_t, int64_t, int64_t, int64_t, T*),
                 neighbours_any<T>)
  (fold, x, taps, stride, dilation, n, out);
}
#define TOMBOLO_POOL(T)                                                     \
  template void pool_rows(PoolFold, const T* const*, int64_t, int64_t, T*); \
  template void pool_neighbours(PoolFold, const T*, int64_t, int64_t, int64_t, int64_t, T*);
TOMBOLO_POOL(float)
TOMBOLO_POOL(uint8_t)
TOMBOLO_POOL(int8_t)
#undef TOMBOLO_POOL

}  // namespace tombolo
#endif
