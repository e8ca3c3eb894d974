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

/// Four rows of floats at a time: one sum alone would wait for itself, and more rows that are a
/// power of two apart push each other out of the first cache. An integer's sum waits for nothing.
template <typename T>
void sums_along(const T* x, int64_t rows, int64_t n, bool exclusive, bool reverse, T* y) {
  constexpr int64_t kRows = std::is_floating_point_v<T> ? 4 : 1;
  int64_t r = 0;
  const int64_t first = reverse ? n - 1 : 0, by = reverse ? -1 : 1;
  for (; r + kRows <= rows; r += kRows) {
    Sum<T> sums[kRows] = {};
    for (int64_t i = 0, at = r * n + first; i < n; ++i, at += by) {
      T values[kRows];
#pragma GCC unroll 8
      for (int64_t k = 0; k < kRows; ++k) values[k] = x[at + k * n];
      if (exclusive) {
#pragma GCC unroll 8
        for (int64_t k = 0; k < kRows; ++k) y[at + k * n] = static_cast<T>(sums[k]);
      }
#pragma GCC unroll 8
      for (int64_t k = 0; k < kRows; ++k) sums[k] += static_cast<Sum<T>>(values[k]);
      if (!exclusive) {
#pragma GCC unroll 8
        for (int64_t k = 0; k < kRows; ++k) y[at + k * n] = static_cast<T>(sums[k]);
      }
    }
  }
  for (; r < rows; ++r) {
    Sum<T> sum{};
    for (int64_t i = 0, at = r * n + first; i < n; ++i, at += by) {
      const T value = x[at];
      if (exclusive) y[at] = static_cast<T>(sum);
      sum += static_cast<Sum<T>>(value);
      if (!exclusive) y[at] = static_cast<T>(sum);
    }
  }
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
