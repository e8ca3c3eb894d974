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
template <PoolFold kFold, bool kNumbers, class D, class V>
HWY_INLINE V fold_in(D, V sum, V x) {
  if constexpr (kFold == PoolFold::kMax) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>() && !kNumbers)
      return hn::IfThenElse(hn::Or(hn::IsNaN(sum), hn::Lt(x, sum)), sum, x);
    else
      return hn::Max(sum, x);
  }
  if constexpr (kFold == PoolFold::kSum) return hn::Add(sum, x);
  if constexpr (kFold == PoolFold::kSumSquare) return hn::MulAdd(x, x, sum);
  if constexpr (kFold == PoolFold::kSumMagnitude) return hn::Add(sum, hn::Abs(x));
}

template <PoolFold kFold, bool kNumbers, typename T>
void rows_of(const T* x, const PoolWindows& s, T empty, T* lines) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t slice = s.in_rows * s.width;
  for (int64_t r = 0; r < s.rows; ++r, lines += s.step) {
    // The taps that lie inside, in either direction.
    const auto inside = [](int64_t first, int64_t step, int64_t count, int64_t end, int64_t& low,
                           int64_t& high) {
      low = first >= 0 ? 0 : (-first + step - 1) / step;
      high = end <= first ? 0 : (end - 1 - first) / step + 1;
      if (high > count) high = count;
    };
    const int64_t first_row = r * s.stride - s.pad;
    int64_t low, high, near, far;
    inside(first_row, s.dilation, s.taps, s.in_rows, low, high);
    inside(s.first_depth, s.depth_step, s.depths, s.in_depths, near, far);
    if (low >= high || near >= far) {
      for (int64_t i = 0; i < s.width; ++i) lines[i] = empty;
      continue;
    }
    const T* first = x + (s.first_depth + near * s.depth_step) * slice +
                     (first_row + low * s.dilation) * s.width;
    const int64_t row_step = s.dilation * s.width, depth_step = s.depth_step * slice;
    const int64_t rows = high - low, depths = far - near;
    for (int64_t i = 0; i < s.width; i += lanes) {
      const int64_t left = s.width - i;
      V sum = first_of<kFold>(load_n(d, first + i, left));
      for (int64_t k = 1; k < rows; ++k)
        sum = fold_in<kFold, kNumbers>(d, sum, load_n(d, first + k * row_step + i, left));
      for (int64_t q = 1; q < depths; ++q)
        for (int64_t k = 0; k < rows; ++k)
          sum = fold_in<kFold, kNumbers>(
              d, sum, load_n(d, first + q * depth_step + k * row_step + i, left));
      store_n(sum, d, lines + i, left);
    }
  }
}

template <PoolFold kFold, bool kNumbers, typename T>
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
        sum = fold_in<kFold, kNumbers>(d, sum, hn::LoadU(d, x + i + k * dilation));
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
          sum = k == 0 ? value : fold_in<kFold, kNumbers>(d, sum, value);
          if (k + 1 < taps && dilation == 1) {
            sum = fold_in<kFold, kNumbers>(d, sum, hn::ConcatOdd(d, high, low));
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

template <PoolFold kFold, bool kNumbers, typename T>
void neighbours_of(const T* x, const PoolLines& s, T* out) {
  for (int64_t r = 0; r < s.rows; ++r)
    one_line<kFold, kNumbers>(x + r * s.step, s,
                              s.factors == nullptr ? nullptr : s.factors + r * s.n, out + r * s.n);
}

template <typename T>
void rows_any(PoolFold fold, const T* x, const PoolWindows& windows, T empty, bool numbers,
              T* lines) {
  if constexpr (std::is_same_v<T, float>) {
    if (fold == PoolFold::kMax && !numbers)
      return rows_of<PoolFold::kMax, false>(x, windows, empty, lines);
    if (fold == PoolFold::kSum) return rows_of<PoolFold::kSum, true>(x, windows, empty, lines);
    if (fold == PoolFold::kSumSquare)
      return rows_of<PoolFold::kSumSquare, true>(x, windows, empty, lines);
    if (fold == PoolFold::kSumMagnitude)
      return rows_of<PoolFold::kSumMagnitude, true>(x, windows, empty, lines);
  }
  rows_of<PoolFold::kMax, true>(x, windows, empty, lines);
}
template <typename T>
void neighbours_any(PoolFold fold, const T* x, const PoolLines& lines, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (fold != PoolFold::kMax) return neighbours_of<PoolFold::kSum, true>(x, lines, out);
    if (!lines.numbers) return neighbours_of<PoolFold::kMax, false>(x, lines, out);
  }
  neighbours_of<PoolFold::kMax, true>(x, lines, out);
}

bool has_nan(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes),
               c = hn::LoadU(d, x + i + 2 * lanes), e = hn::LoadU(d, x + i + 3 * lanes);
    const auto nan = hn::Or(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Or(hn::IsNaN(c), hn::IsNaN(e)));
    if (!hn::AllFalse(d, nan)) return true;
  }
  for (; i < n; i += lanes)
    if (!hn::AllFalse(d, hn::IsNaN(load_n(d, x + i, n - i)))) return true;
  return false;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void pool_rows(PoolFold fold, const T* x, const PoolWindows& windows, T empty, bool numbers,
               T* lines) {
  using Fn = void(PoolFold, const T*, const PoolWindows&, T, bool, T*);
  TOMBOLO_TARGET(Fn, rows_any<T>).get()(fold, x, windows, empty, numbers, lines);
}
bool any_nan(const float* x, int64_t n) {
  return TOMBOLO_TARGET(bool(const float*, int64_t), has_nan)(x, n);
}
template <typename T>
void pool_neighbours(PoolFold fold, const T* x, const PoolLines& lines, T* out) {
  using Fn = void(PoolFold, const T*, const PoolLines&, T*);
  TOMBOLO_TARGET(Fn, neighbours_any<T>).get()(fold, x, lines, out);
}
#define TOMBOLO_POOL(T)                                                         \
  template void pool_rows(PoolFold, const T*, const PoolWindows&, T, bool, T*); \
  template void pool_neighbours(PoolFold, const T*, const PoolLines&, T*);
TOMBOLO_POOL(float)
TOMBOLO_POOL(uint8_t)
TOMBOLO_POOL(int8_t)
#undef TOMBOLO_POOL

}  // namespace tombolo
#endif
