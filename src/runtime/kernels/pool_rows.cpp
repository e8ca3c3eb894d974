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
HWY_INLINE void one_line(const T* x, const PoolLines& s, const float* factors, T* out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t taps = s.taps, dilation = s.dilation, n = s.n;
  const auto give = [&](V sum, int64_t i) HWY_ATTR {
    if constexpr (std::is_same_v<T, float>)
      if (factors != nullptr) sum = hn::Mul(sum, load_n(d, factors + i, n - i));
    store_n(sum, d, out + i, n - i);
  };
  int64_t i = 0;
  if (s.stride == 1) {
    for (; i < n; i += lanes) {
      V sum = hn::LoadU(d, x + i);
      for (int64_t k = 1; k < taps; ++k)
        sum = fold_in<kFold>(d, sum, hn::LoadU(d, x + i + k * dilation));
      give(sum, i);
    }
    return;
  }
  if constexpr (sizeof(T) == 4) {
    if (s.stride == 2) {
      // Even and odd elements apart, two taps at a time.
      for (; i < n; i += lanes) {
        V sum = hn::Zero(d);
        for (int64_t k = 0; k < taps; ++k) {
          const T* from = x + 2 * i + k * dilation;
          const V low = hn::LoadU(d, from), high = hn::LoadU(d, from + lanes);
          const V value = hn::ConcatEven(d, high, low);
          sum = k == 0 ? value : fold_in<kFold>(d, sum, value);
          if (k + 1 < taps && dilation == 1) {
            sum = fold_in<kFold>(d, sum, hn::ConcatOdd(d, high, low));
            ++k;
          }
        }
        give(sum, i);
      }
      return;
    }
  }
  for (; i < n; ++i) {
    T sum = x[i * s.stride];
    for (int64_t k = 1; k < taps; ++k) {
      const T value = x[i * s.stride + k * dilation];
      if constexpr (kFold == PoolFold::kMax)
        sum = sum != sum || value < sum ? sum : value;
      else
        sum = static_cast<T>(sum + value);
    }
    if constexpr (std::is_same_v<T, float>)
      if (factors != nullptr) sum *= factors[i];
    out[i] = sum;
  }
}

template <PoolFold kFold, typename T>
void neighbours_of(const T* x, const PoolLines& s, T* out) {
  for (int64_t r = 0; r < s.rows; ++r)
    one_line<kFold>(x + r * s.step, s, s.factors == nullptr ? nullptr : s.factors + r * s.n,
                    out + r * s.n);
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
void neighbours_any(PoolFold fold, const T* x, const PoolLines& lines, T* out) {
  if (fold == PoolFold::kMax) return neighbours_of<PoolFold::kMax>(x, lines, out);
  if constexpr (std::is_same_v<T, float>) neighbours_of<PoolFold::kSum>(x, lines, out);
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
void pool_neighbours(PoolFold fold, const T* x, const PoolLines& lines, T* out) {
  using Fn = void(PoolFold, const T*, const PoolLines&, T*);
  TOMBOLO_TARGET(Fn, neighbours_any<T>).get()(fold, x, lines, out);
}
#define TOMBOLO_POOL(T)                                                     \
  template void pool_rows(PoolFold, const T* const*, int64_t, int64_t, T*); \
  template void pool_neighbours(PoolFold, const T*, const PoolLines&, T*);
TOMBOLO_POOL(float)
TOMBOLO_POOL(uint8_t)
TOMBOLO_POOL(int8_t)
#undef TOMBOLO_POOL

}  // namespace tombolo
#endif
