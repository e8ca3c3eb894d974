#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/norm/layer_rows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/across-inl.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/norm/layer_rows.h"
#include "runtime/kernels/reduce/rows.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

constexpr int64_t kLanes = HWY_LANES(float);

/// fn(x[i..], i, how many) of each vector of a row, the last one filled with zeros.
template <typename Fn>
HWY_INLINE void for_vectors(const float* x, int64_t n, Fn&& fn) {
  const F d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) fn(hn::LoadU(d, x + i), i, kLanes);
  if (i < n) fn(load_n(d, x + i, n - i), i, n - i);
}

/// As many rows as a vector has lanes, or fewer: in the same order, so that a row's numbers do not
/// depend on where a thread's rows end.
enum class Scaled { kColumns, kRows };  // scale and bias are of
template <bool kRms, Scaled kScaled>
HWY_INLINE void normalize_some(const float* x, int64_t rows, int64_t n, float epsilon,
                               const float* scale, const float* bias, float* y, float* means,
                               float* inverses) {
  const F d;
  const V count = hn::Set(d, static_cast<float>(n));
  V parts[kLanes];
  for (int64_t r = rows; r < kLanes; ++r) parts[r] = hn::Zero(d);
  if constexpr (!kRms) {
    for (int64_t r = 0; r < rows; ++r) {
      V sum = hn::Zero(d);
      for_vectors(x + r * n, n, [&](V v, int64_t, int64_t) HWY_ATTR { sum = hn::Add(sum, v); });
      parts[r] = sum;
    }
    store_n(hn::Div(sums_across(d, parts), count), d, means, rows);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const V mean = kRms ? hn::Zero(d) : hn::Set(d, means[r]);
    V sum = hn::Zero(d);
    for_vectors(x + r * n, n, [&](V v, int64_t, int64_t left) HWY_ATTR {
      V c = kRms ? v : hn::Sub(v, mean);
      if (!kRms && left < kLanes)
        c = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), c);
      sum = hn::MulAdd(c, c, sum);
    });
    parts[r] = sum;
  }
  const V variance = hn::Div(sums_across(d, parts), count);
  store_n(hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(variance, hn::Set(d, epsilon)))), d, inverses,
          rows);
  for (int64_t r = 0; r < rows; ++r) {
    const V mean = kRms ? hn::Zero(d) : hn::Set(d, means[r]);
    const V inverse = hn::Set(d, kScaled == Scaled::kRows ? inverses[r] * scale[r] : inverses[r]);
    float* to = y + r * n;
    for_vectors(x + r * n, n, [&](V v, int64_t i, int64_t left) HWY_ATTR {
      V c = hn::Mul(kRms ? v : hn::Sub(v, mean), inverse);
      if constexpr (kScaled == Scaled::kRows)
        c = hn::Add(c, hn::Set(d, bias[r]));
      else if (scale != nullptr && bias != nullptr)
        c = hn::MulAdd(c, load_n(d, scale + i, left), load_n(d, bias + i, left));
      else if (scale != nullptr)
        c = hn::Mul(c, load_n(d, scale + i, left));
      else if (bias != nullptr)
        c = hn::Add(c, load_n(d, bias + i, left));
      store_n(c, d, to + i, left);
    });
  }
}

void normalize_groups(bool rms, const float* x, int64_t rows, int64_t n, float epsilon,
                      const float* scale, const float* bias, float* y, float* means,
                      float* inverses) {
  float own_means[kLanes], own_inverses[kLanes];
  for (int64_t row = 0; row < rows; row += kLanes) {
    float* m = means != nullptr ? means + row : own_means;
    float* inverse = inverses != nullptr ? inverses + row : own_inverses;
    (rms ? normalize_some<true, Scaled::kColumns>
         : normalize_some<false, Scaled::kColumns>)(x + row * n, std::min(kLanes, rows - row), n,
                                                    epsilon, scale, bias, y + row * n, m, inverse);
  }
}

void normalize_planes_any(const float* x, int64_t begin, int64_t end, int64_t n, float epsilon,
                          const float* scale, const float* bias, int64_t channels, float* y) {
  float means[kLanes], inverses[kLanes], scales[kLanes], biases[kLanes];
  int64_t channel = begin % channels;
  for (int64_t plane = begin; plane < end; plane += kLanes, x += kLanes * n, y += kLanes * n) {
    const int64_t some = std::min(kLanes, end - plane);
    for (int64_t i = 0; i < some; ++i, channel = channel + 1 < channels ? channel + 1 : 0) {
      scales[i] = scale[channel];
      biases[i] = bias[channel];
    }
    normalize_some<false, Scaled::kRows>(x, some, n, epsilon, scales, biases, y, means, inverses);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {
constexpr int64_t kMostOfShortRow = 256;  ///< floats of a row from which on its own loop is as fast
}  // namespace

void normalize_rows(bool rms, const float* x, int64_t rows, int64_t n, float epsilon,
                    const float* scale, const float* bias, float* y, float* means,
                    float* inverses) {
  if (n <= kMostOfShortRow)
    return TOMBOLO_TARGET(void(bool, const float*, int64_t, int64_t, float, const float*,
                               const float*, float*, float*, float*),
                          normalize_groups)(rms, x, rows, n, epsilon, scale, bias, y, means,
                                            inverses);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * n;
    const RowMoments moments =
        rms ? RowMoments{0, row_inverse_rms(from, n, epsilon)} : row_moments(from, n, epsilon);
    if (means != nullptr) means[row] = moments.mean;
    if (inverses != nullptr) inverses[row] = moments.inverse_deviation;
    normalize_row(from, y + row * n, n, moments, scale, bias);
  }
}

void normalize_planes(const float* x, int64_t begin, int64_t end, int64_t n, float epsilon,
                      const float* scale, const float* bias, int64_t channels, float* y) {
  TOMBOLO_TARGET(void(const float*, int64_t, int64_t, int64_t, float, const float*, const float*,
                      int64_t, float*),
                 normalize_planes_any)
  (x, begin, end, n, epsilon, scale, bias, channels, y);
}

}  // namespace tombolo
#endif
