#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/math/distance.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math/distance.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows at a time: as many as registers hold sums of two vectors beside what is multiplied.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int kTall = 12;
#else
inline constexpr int kTall = 5;
#endif

/// Differences first: |a|^2 + |b|^2 - 2 a b would leave little of the distance of neighbours.
template <int kR, int kV, typename T>
void distance_tile(const DistanceTile<T>& t, const T* a, int64_t column, T* y) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kR * kV];
#pragma GCC unroll 24
  for (V& s : sum) s = hn::Zero(d);
  const T* b = t.panel + column;
  const int64_t width = t.width;
  for (int64_t k = 0; k < width; ++k, b += t.panel_width) {
    V of_b[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) of_b[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 12
    for (int r = 0; r < kR; ++r) {
      const V of_a = hn::Set(d, a[r * width + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) {
        const V apart = hn::Sub(of_a, of_b[v]);
        add_product(sum[r * kV + v], apart, apart);
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) {
      const V s = sum[r * kV + v];
      const int64_t at = column + v * lanes;
      if (at < t.cols) store_n(t.root ? hn::Sqrt(s) : s, d, y + r * t.ldy + at, t.cols - at);
    }
}

template <typename T>
void distances_any(const DistanceTile<T>& t, int64_t rows) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int64_t column = 0; column < t.cols; column += 2 * lanes) {
    const bool two = column + lanes < t.cols;
    const auto some = [&]<int kR>(int64_t r) {
      (two ? distance_tile<kR, 2, T> : distance_tile<kR, 1, T>)(t, t.a + r * t.width, column,
                                                                t.y + r * t.ldy);
    };
    int64_t r = 0;
    for (; r + kTall <= rows; r += kTall) some.template operator()<kTall>(r);
    for (; r + 4 <= rows; r += 4) some.template operator()<4>(r);
    for (; r < rows; ++r) some.template operator()<1>(r);
  }
}

/// What of the sum of two squares has to be left for a difference.
template <typename T>
constexpr T kLeft = T{1} / 16;

template <bool kSquares, typename T>
T distance_pair(const T* a, const T* b, int64_t n) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const auto apart = [&](int64_t i, int64_t left) HWY_ATTR __attribute__((always_inline)) {
    const V x = left < lanes ? load_n(d, a + i, left) : hn::LoadU(d, a + i);
    if constexpr (kSquares) return x;
    return hn::Sub(x, left < lanes ? load_n(d, b + i, left) : hn::LoadU(d, b + i));
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const V x = apart(i + v * lanes, lanes);
      sums[v] = hn::MulAdd(x, x, sums[v]);
    }
  for (; i < n; i += lanes) {
    const V x = apart(i, n - i);
    sums[0] = hn::MulAdd(x, x, sums[0]);
  }
  const V sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <typename T>
void squares_any(const T* x, int64_t rows, int64_t width, T* sums) {
  for (int64_t r = 0; r < rows; ++r)
    sums[r] = distance_pair<true>(x + r * width, static_cast<const T*>(nullptr), width);
}

template <typename T>
void products_any(const DistanceProducts<T>& p) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V two = hn::Set(d, T{2}), part = hn::Set(d, kLeft<T>);
  const V most = hn::Set(d, std::numeric_limits<T>::max());
  HWY_ALIGN T near[HWY_LANES(T)];
  for (int64_t r = 0; r < p.rows; ++r) {
    T* const y = p.y + r * p.ldy;
    const V own = hn::Set(d, p.squares_a[r]);
    for (int64_t j = 0; j < p.cols; j += lanes) {
      const int64_t left = std::min(lanes, p.cols - j);
      const V both = hn::Add(own, load_n(d, p.squares_b + j, left));
      const V sum = hn::NegMulAdd(two, load_n(d, y + j, left), both);
      const auto good = hn::And(hn::Ge(sum, hn::Mul(both, part)), hn::Le(sum, most));
      store_n(p.root ? hn::Sqrt(sum) : sum, d, y + j, left);
      if (hn::AllTrue(d, good)) continue;
      hn::Store(hn::IfThenElseZero(good, hn::Set(d, T{1})), d, near);
      for (int64_t i = 0; i < left; ++i) {
        if (near[i] != 0) continue;
        const T exact = distance_pair<false>(p.a + r * p.width, p.b + (j + i) * p.width, p.width);
        y[j + i] = p.root ? std::sqrt(exact) : exact;
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void distance_rows(const DistanceTile<T>& tile, int64_t rows) {
  TOMBOLO_TARGET(void(const DistanceTile<T>&, int64_t), distances_any<T>).get()(tile, rows);
}
template <typename T>
void distances_of_products(const DistanceProducts<T>& products) {
  TOMBOLO_TARGET(void(const DistanceProducts<T>&), products_any<T>).get()(products);
}
template <typename T>
void sums_of_squares(const T* x, int64_t rows, int64_t width, T* sums) {
  TOMBOLO_TARGET(void(const T*, int64_t, int64_t, T*), squares_any<T>)(x, rows, width, sums);
}

template <typename T>
bool mostly_near(const T* a, int64_t rows, const T* b, int64_t columns, int64_t width) {
  constexpr int64_t kPairs = 32;
  int64_t near = 0;
  for (int64_t i = 0; i < kPairs; ++i) {
    const T* x = a + i * rows / kPairs * width;
    const T* y = b + (i * 7 + 3) % kPairs * columns / kPairs * width;
    T squares = 0, apart = 0;
    for (int64_t k = 0; k < width; ++k) {
      squares += x[k] * x[k] + y[k] * y[k];
      apart += (x[k] - y[k]) * (x[k] - y[k]);
    }
    near += apart >= squares / 8 ? 0 : 1;
  }
  return near > kPairs / 16;
}

#define TOMBOLO_DISTANCE(T)                                        \
  template void distance_rows(const DistanceTile<T>&, int64_t);    \
  template void distances_of_products(const DistanceProducts<T>&); \
  template void sums_of_squares(const T*, int64_t, int64_t, T*);   \
  template bool mostly_near(const T*, int64_t, const T*, int64_t, int64_t);
TOMBOLO_DISTANCE(float)
TOMBOLO_DISTANCE(double)
#undef TOMBOLO_DISTANCE

}  // namespace tombolo
#endif
