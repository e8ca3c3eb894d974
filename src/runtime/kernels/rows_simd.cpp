#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/rows_simd.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/rows.h"
#include "runtime/kernels/vec-inl.h"

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

void normalize(const float* x, float* y, int64_t n, float mean, float inverse, const float* scale,
               const float* bias) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V m = hn::Set(d, mean), r = hn::Set(d, inverse);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    V v = hn::Mul(hn::Sub(load_n(d, x + i, left), m), r);
    if (scale != nullptr && bias != nullptr)
      v = hn::MulAdd(v, load_n(d, scale + i, left), load_n(d, bias + i, left));
    else if (scale != nullptr)
      v = hn::Mul(v, load_n(d, scale + i, left));
    else if (bias != nullptr)
      v = hn::Add(v, load_n(d, bias + i, left));
    store_n(v, d, y + i, left);
  }
}

constexpr int64_t kLine = 16;  ///< floats of a cache line

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

void softmax_down(const float* x, float* y, int64_t n, int64_t step, int64_t width,
                  bool logarithm) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < width; j += lanes) {
    const int64_t left = width - j;
    V m = load_n(d, x + j, left);
    for (int64_t i = 1; i < n; ++i) m = hn::Max(load_n(d, x + i * step + j, left), m);
    V sum = hn::Zero(d);
    for (int64_t i = 0; i < n; ++i) {
      const V a = hn::Sub(load_n(d, x + i * step + j, left), m);
      const V e = v_exp_negative(d, a);
      sum = hn::Add(sum, e);
      store_n(logarithm ? a : e, d, y + i * step + j, left);
    }
    const V r = logarithm ? v_log(d, sum) : hn::Div(hn::Set(d, 1.0f), sum);
    for (int64_t i = 0; i < n; ++i) {
      const V v = load_n(d, y + i * step + j, left);
      store_n(logarithm ? hn::Sub(v, r) : hn::Mul(v, r), d, y + i * step + j, left);
    }
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
float row_inverse_rms(const float* x, int64_t n, float epsilon) {
  return TOMBOLO_TARGET(float(const float*, int64_t, float), inverse_rms)(x, n, epsilon);
}
void softmax_row(const float* x, float* y, int64_t n, bool logarithm) {
  TOMBOLO_TARGET(void(const float*, float*, int64_t, bool), softmax)(x, y, n, logarithm);
}
void softmax_columns(const float* x, float* y, int64_t n, int64_t step, int64_t width,
                     bool logarithm) {
  TOMBOLO_TARGET(void(const float*, float*, int64_t, int64_t, int64_t, bool), softmax_down)
  (x, y, n, step, width, logarithm);
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
