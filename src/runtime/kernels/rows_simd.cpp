#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/rows_simd.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/rows.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_ROWS_SIMD_ONCE  // included once for each target
#define TOMBOLO_ROWS_SIMD_ONCE
namespace tombolo {
constexpr int64_t kLine = 16;        ///< floats of a cache line
constexpr int64_t kShortRow = 4096;  ///< some fit into the first cache
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

/// Sum over i of fn(x[i]); lanes beyond the end count as fn's zero.
template <typename Fn>
HWY_INLINE float sum_of(const float* x, int64_t n, Fn&& fn) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, fn(hn::LoadU(d, x + i)));
    s1 = hn::Add(s1, fn(hn::LoadU(d, x + i + lanes)));
    s2 = hn::Add(s2, fn(hn::LoadU(d, x + i + 2 * lanes)));
    s3 = hn::Add(s3, fn(hn::LoadU(d, x + i + 3 * lanes)));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, fn(hn::LoadU(d, x + i)));
  if (i < n)
    s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)),
                                        fn(load_n(d, x + i, n - i))));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

RowMoments moments(const float* x, int64_t n, float epsilon) {
  const F d;
  const float mean = sum_of(x, n, [](V v) HWY_ATTR { return v; }) / static_cast<float>(n);
  const V m = hn::Set(d, mean);
  const float squares = sum_of(x, n, [&](V v) HWY_ATTR {
    const V c = hn::Sub(v, m);
    return hn::Mul(c, c);
  });
  return {mean, 1 / std::sqrt(squares / static_cast<float>(n) + epsilon)};
}

float inverse_rms(const float* x, int64_t n, float epsilon) {
  const float squares = sum_of(x, n, [](V v) HWY_ATTR { return hn::Mul(v, v); });
  return 1 / std::sqrt(squares / static_cast<float>(n) + epsilon);
}

/// y = (x - mean) * inverse, then scale(v, i, left) of it.
template <typename Scale>
HWY_INLINE void normalize_by(const float* x, float* y, int64_t n, float mean, float inverse,
                             Scale&& scale) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V m = hn::Set(d, mean), r = hn::Set(d, inverse);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    // The next row comes meanwhile, as in softmax, where it stays until it is looked at.
    if (n <= kShortRow)
      for (int64_t line = i; line < i + 2 * lanes; line += kLine) __builtin_prefetch(x + n + line);
#pragma GCC unroll 2
    for (int64_t j = i; j < i + 2 * lanes; j += lanes) {
      const V v = hn::Mul(hn::Sub(hn::LoadU(d, x + j), m), r);
      hn::StoreU(scale(v, j, lanes), d, y + j);
    }
  }
  for (; i < n; i += lanes) {
    const V v = hn::Mul(hn::Sub(load_n(d, x + i, n - i), m), r);
    store_n(scale(v, i, n - i), d, y + i, n - i);
  }
}

void normalize(const float* x, float* y, int64_t n, float mean, float inverse, const float* scale,
               const float* bias) {
  const F d;
  const auto of = [&](const float* from, int64_t i, int64_t left)
                      HWY_ATTR { return load_n(d, from + i, left); };
  if (scale != nullptr && bias != nullptr)
    return normalize_by(x, y, n, mean, inverse, [&](V v, int64_t i, int64_t left) HWY_ATTR {
      return hn::MulAdd(v, of(scale, i, left), of(bias, i, left));
    });
  if (scale != nullptr)
    return normalize_by(x, y, n, mean, inverse, [&](V v, int64_t i, int64_t left) HWY_ATTR {
      return hn::Mul(v, of(scale, i, left));
    });
  if (bias != nullptr)
    return normalize_by(x, y, n, mean, inverse, [&](V v, int64_t i, int64_t left) HWY_ATTR {
      return hn::Add(v, of(bias, i, left));
    });
  normalize_by(x, y, n, mean, inverse, [](V v, int64_t, int64_t) HWY_ATTR { return v; });
}

void normalize_with(const float* x, float* y, int64_t n, float mean, float inverse, float scale,
                    float bias) {
  const F d;
  const V s = hn::Set(d, scale), b = hn::Set(d, bias);
  normalize_by(x, y, n, mean, inverse,
               [&](V v, int64_t, int64_t) HWY_ATTR { return hn::MulAdd(v, s, b); });
}

void softmax(const float* x, float* y, int64_t n, bool logarithm) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V top = hn::Set(d, x[0]), top1 = top;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    top = hn::Max(hn::LoadU(d, x + i), top);
    top1 = hn::Max(hn::LoadU(d, x + i + lanes), top1);
  }
  top = hn::Max(top, top1);
  float most = hn::GetLane(hn::MaxOfLanes(d, top));
  for (; i < n; ++i) most = std::max(most, x[i]);
  const V m = hn::Set(d, most);
  V sum = hn::Zero(d), sum1 = sum;
  // What would become a denormal number is 0: adding masks of -100 or so gives them by the
  // thousand, and arithmetic with them is a hundred times slower.
  const V least = hn::Set(d, std::numeric_limits<float>::min() * static_cast<float>(n));
  const auto power = [&](V a) HWY_ATTR {
    // Not even on the way: e^-87 is a normal number.
    const V e = v_exp_inside(d, hn::Max(hn::Set(d, -87.0f), a));
    return hn::IfThenElse(hn::Lt(e, least), hn::Zero(d), e);
  };
  i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    // The next row comes while this one is computed: caches do not foresee it at its first pass.
    for (int64_t line = i; line < i + 2 * lanes; line += kLine) {
      __builtin_prefetch(x + n + line);
      __builtin_prefetch(y + n + line, 1);
    }
    const V a = hn::Sub(hn::LoadU(d, x + i), m), b = hn::Sub(hn::LoadU(d, x + i + lanes), m);
    const V ea = power(a), eb = power(b);
    sum = hn::Add(sum, ea);
    sum1 = hn::Add(sum1, eb);
    hn::StoreU(logarithm ? a : ea, d, y + i);
    hn::StoreU(logarithm ? b : eb, d, y + i + lanes);
  }
  for (; i < n; i += lanes) {
    const V a = hn::Sub(load_n(d, x + i, n - i), m);
    const V e = power(a);
    const int64_t left = std::min(lanes, n - i);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), e));
    store_n(logarithm ? a : e, d, y + i, n - i);
  }
  const float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, sum1)));
  const V r = hn::Set(d, logarithm ? std::log(total) : 1 / total);
  for (i = 0; i < n; i += lanes) {
    const V v = load_n(d, y + i, n - i);
    store_n(logarithm ? hn::Sub(v, r) : hn::Mul(v, r), d, y + i, n - i);
  }
}

/// kVectors of columns within `room`, n rows that are `step` apart: what is left of each is
/// `scale` to multiply by (or to subtract).
template <int kVectors>
HWY_INLINE void softmax_strip(float* room, int64_t n, int64_t step, bool logarithm, float* most,
                              float* scale) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V m[kVectors], sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    m[v] = hn::LoadU(d, most + v * lanes);
    sum[v] = hn::Zero(d);
  }
  for (int64_t i = 0; i < n; ++i, room += step)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V a = hn::Sub(hn::LoadU(d, room + v * lanes), m[v]);
      const V e = v_exp_negative(d, a);
      sum[v] = hn::Add(sum[v], e);
      hn::StoreU(logarithm ? a : e, d, room + v * lanes);
    }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v)
    hn::StoreU(logarithm ? v_log(d, sum[v]) : hn::Div(hn::Set(d, 1.0f), sum[v]), d,
               scale + v * lanes);
}

/// What is read is kept in `room`, where rows follow each other: those of x are often a power of
/// two apart and push each other out of the first cache.
void softmax_down(const float* x, float* y, int64_t n, int64_t step, int64_t width, bool logarithm,
                  float* room) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = width / lanes * lanes, padded = (width + lanes - 1) / lanes * lanes;
  HWY_ALIGN float most[kSoftmaxColumns], scale[kSoftmaxColumns];
  for (int64_t i = 0; i < n; ++i) {
    float* to = room + i * padded;
    const auto take = [&](int64_t j, V a) HWY_ATTR {
      hn::Store(i == 0 ? a : hn::Max(a, hn::Load(d, most + j)), d, most + j);
      hn::StoreU(a, d, to + j);
    };
    for (int64_t j = 0; j < whole; j += lanes) take(j, hn::LoadU(d, x + i * step + j));
    if (whole < width) take(whole, load_n(d, x + i * step + whole, width - whole));
  }
  int64_t at = 0;
  for (; at + 4 * lanes <= padded; at += 4 * lanes)
    softmax_strip<4>(room + at, n, padded, logarithm, most + at, scale + at);
  for (; at < padded; at += lanes)
    softmax_strip<1>(room + at, n, padded, logarithm, most + at, scale + at);
  for (int64_t i = 0; i < n; ++i) {
    const auto scaled = [&](int64_t j) HWY_ATTR {
      const V v = hn::LoadU(d, room + i * padded + j), by = hn::Load(d, scale + j);
      return logarithm ? hn::Sub(v, by) : hn::Mul(v, by);
    };
    float* to = y + i * step;
    for (int64_t j = 0; j < whole; j += lanes) hn::StoreU(scaled(j), d, to + j);
    if (whole < width) store_n(scaled(whole), d, to + whole, width - whole);
  }
}

void lrn(const float* HWY_RESTRICT x, float* HWY_RESTRICT y, int64_t channels, int64_t plane,
         int64_t n, int64_t before, int64_t after, float factor, float bias, float beta) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V f = hn::Set(d, factor), b = hn::Set(d, bias);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    for (int64_t c = 0; c < channels; ++c) {
      V sum = hn::Zero(d);
      const int64_t high = std::min(channels - 1, c + after);
      for (int64_t k = std::max<int64_t>(0, c - before); k <= high; ++k) {
        const V v = load_n(d, x + k * plane + i, left);
        sum = hn::MulAdd(v, v, sum);
      }
      const V base = hn::MulAdd(f, sum, b);
      const V v = load_n(d, x + c * plane + i, left);
      V result;
      if (beta == 0.75f) {  // x^(3/4) = sqrt(x) * sqrt(sqrt(x))
        const V root = hn::Sqrt(base);
        result = hn::Div(v, hn::Mul(root, hn::Sqrt(root)));
      } else if (beta == 0.5f) {
        result = hn::Div(v, hn::Sqrt(base));
      } else if (beta == 1.0f) {
        result = hn::Div(v, base);
      } else {
        result = hn::Mul(v, v_exp(d, hn::Mul(hn::Set(d, -beta), v_log(d, base))));
      }
      store_n(result, d, y + c * plane + i, left);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

RowMoments row_moments(const float* x, int64_t n, float epsilon) {
  return TOMBOLO_TARGET(RowMoments(const float*, int64_t, float), moments)(x, n, epsilon);
}
void normalize_row(const float* x, float* y, int64_t n, RowMoments m, const float* scale,
                   const float* bias) {
  TOMBOLO_TARGET(void(const float*, float*, int64_t, float, float, const float*, const float*),
                 normalize)
  (x, y, n, m.mean, m.inverse_deviation, scale, bias);
}
void normalize_plane(const float* x, float* y, int64_t n, RowMoments m, float scale, float bias) {
  TOMBOLO_TARGET(void(const float*, float*, int64_t, float, float, float, float), normalize_with)
  (x, y, n, m.mean, m.inverse_deviation, scale, bias);
}
float row_inverse_rms(const float* x, int64_t n, float epsilon) {
  return TOMBOLO_TARGET(float(const float*, int64_t, float), inverse_rms)(x, n, epsilon);
}
void softmax_row(const float* x, float* y, int64_t n, bool logarithm) {
  TOMBOLO_TARGET(void(const float*, float*, int64_t, bool), softmax)(x, y, n, logarithm);
}
void softmax_columns(const float* x, float* y, int64_t n, int64_t step, int64_t width,
                     bool logarithm) {
  const int64_t padded = (width + kLine - 1) / kLine * kLine;
  float* room = thread_floats(0, static_cast<size_t>(n * padded));
  TOMBOLO_TARGET(void(const float*, float*, int64_t, int64_t, int64_t, bool, float*), softmax_down)
  (x, y, n, step, width, logarithm, room);
}
void lrn_run(const float* x, float* y, int64_t channels, int64_t plane, int64_t n, int64_t before,
             int64_t after, float factor, float bias, float beta) {
  TOMBOLO_TARGET(
      void(const float*, float*, int64_t, int64_t, int64_t, int64_t, int64_t, float, float, float),
      lrn)
  (x, y, channels, plane, n, before, after, factor, bias, beta);
}

}  // namespace tombolo
#endif
