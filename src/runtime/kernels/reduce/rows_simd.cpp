#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/reduce/rows_simd.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/reduce/rows.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_ROWS_SIMD_ONCE  // included once for each target
#define TOMBOLO_ROWS_SIMD_ONCE
namespace tombolo {
constexpr int64_t kLine = 16;        ///< floats of a cache line
constexpr int64_t kShortRow = 4096;  ///< some fit into the first cache
constexpr int64_t kTogether = 256;   ///< floats of a row that waits more than it computes
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

/// The greatest element; a NaN does not count, but for the first.
HWY_INLINE float greatest(const float* x, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V top = hn::Set(d, x[0]), top1 = top;
  if (n < lanes) {
    top = max_of(hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n)), load_n(d, x, n), top), top);
    return hn::GetLane(hn::MaxOfLanes(d, top));
  }
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    top = max_of(hn::LoadU(d, x + i), top);
    top1 = max_of(hn::LoadU(d, x + i + lanes), top1);
  }
  if (i + lanes <= n) top = max_of(hn::LoadU(d, x + i), top);
  top1 = max_of(hn::LoadU(d, x + n - lanes), top1);  // some of them again
  return hn::GetLane(hn::MaxOfLanes(d, max_of(top, top1)));
}

/// The last vector of a row, of which the first lanes were seen before, unless the row is shorter.
HWY_INLINE V load_end(const float* x, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  return n < lanes ? load_n(d, x, n) : hn::LoadU(d, x + n - lanes);
}
/// What load_end() gave, to where it was: lane by lane only where it must be.
HWY_INLINE void store_end(V v, float* y, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n >= lanes) return hn::StoreU(v, d, y + n - lanes);
#if HWY_TARGET == HWY_AVX2
  // A masked store takes twenty cycles and more on some machines.
  const hn::Half<F> h;
  auto part = hn::LowerHalf(h, v);
  if ((n & 4) != 0) {
    hn::StoreU(part, h, y);
    part = hn::UpperHalf(h, v);
    y += 4;
  }
  if ((n & 2) != 0) {
    _mm_storel_pi(reinterpret_cast<__m64*>(y), part.raw);
    part.raw = _mm_movehl_ps(part.raw, part.raw);
    y += 2;
  }
  if ((n & 1) != 0) *y = hn::GetLane(part);
#else
  store_n(v, d, y, n);
#endif
}
/// The lanes of load_end() that were not seen before.
HWY_INLINE hn::Mask<F> new_lanes(int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), left = n % lanes;
  return n < lanes ? hn::FirstN(d, static_cast<size_t>(n))
                   : hn::Not(hn::FirstN(d, static_cast<size_t>(lanes - left)));
}

/// The least power of a softmax that is not 0. What would become a denormal number is 0: adding
/// masks of -100 or so gives them by the thousand, and arithmetic with them is a hundred times
/// slower.
HWY_INLINE V softmax_least(int64_t n) {
  return hn::Set(F(), std::numeric_limits<float>::min() * static_cast<float>(n));
}

/// Where short rows go four at a time one that is left over is summed in their order: what is left
/// over depends on where a thread's rows end.
template <bool kLogarithm>
HWY_INLINE void softmax_of(const float* x, float* y, int64_t n) {
  const bool in_order = kGroup == 4 && n <= kTogether;
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = n / lanes * lanes;
  const V m = hn::Set(d, greatest(x, n)), least = softmax_least(n);
  V end = hn::Zero(d), sum = end, sum1 = end;
  if (whole < n) {  // first: y may be x
    const V a = hn::Sub(load_end(x, n), m), e = v_exp_or_zero(d, a, least);
    (in_order ? sum : sum1) = hn::IfThenElseZero(new_lanes(n), e);
    end = kLogarithm ? a : e;
  }
  int64_t i = 0;
  if constexpr (kGroup == 4) {
    for (; i + 4 * lanes <= whole; i += 4 * lanes) {
      const auto a = gn::Sub(gn::Load(d, x + i), m);
      const auto e = v_exp_or_zero(d, a, least);
      if (in_order) {
        sum = hn::Add(hn::Add(hn::Add(hn::Add(sum, e.v[0]), e.v[1]), e.v[2]), e.v[3]);
      } else {
        sum = hn::Add(sum, hn::Add(e.v[0], e.v[1]));
        sum1 = hn::Add(sum1, hn::Add(e.v[2], e.v[3]));
      }
      gn::Store(kLogarithm ? a : e, d, y + i);
    }
  } else {
    for (; i + 2 * lanes <= whole; i += 2 * lanes) {
      // The next row comes while this one is computed: caches do not foresee it at its first pass.
      for (int64_t line = i; line < i + 2 * lanes; line += kLine) {
        __builtin_prefetch(x + n + line);
        __builtin_prefetch(y + n + line, 1);
      }
      const V a = hn::Sub(hn::LoadU(d, x + i), m), b = hn::Sub(hn::LoadU(d, x + i + lanes), m);
      const V ea = v_exp_or_zero(d, a, least), eb = v_exp_or_zero(d, b, least);
      sum = hn::Add(sum, ea);
      sum1 = hn::Add(sum1, eb);
      hn::StoreU(kLogarithm ? a : ea, d, y + i);
      hn::StoreU(kLogarithm ? b : eb, d, y + i + lanes);
    }
  }
  for (; i < whole; i += lanes) {
    const V a = hn::Sub(hn::LoadU(d, x + i), m), e = v_exp_or_zero(d, a, least);
    sum = hn::Add(sum, e);
    hn::StoreU(kLogarithm ? a : e, d, y + i);
  }
  const float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, sum1)));
  const V r = hn::Set(d, kLogarithm ? std::log(total) : 1 / total);
  const auto scaled = [&](V v) HWY_ATTR { return kLogarithm ? hn::Sub(v, r) : hn::Mul(v, r); };
  for (i = 0; i + 2 * lanes <= whole; i += 2 * lanes) {
    const V a = hn::LoadU(d, y + i), b = hn::LoadU(d, y + i + lanes);
    hn::StoreU(scaled(a), d, y + i);
    hn::StoreU(scaled(b), d, y + i + lanes);
  }
  if (i < whole) hn::StoreU(scaled(hn::LoadU(d, y + i)), d, y + i);
  if (whole < n) store_end(scaled(end), y, n);
}

/// Four short rows together: one alone would wait for its maximum, its sum and its quotient.
template <bool kLogarithm>
HWY_INLINE void softmax_of_four(const float* x, float* y, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = n / lanes * lanes;
  const V least = softmax_least(n);
  const auto fresh = new_lanes(n);
  Group<V> m, end, sum, r;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    V top = hn::Set(d, x[k * n]);
    for (int64_t i = 0; i < whole; i += lanes) top = max_of(hn::LoadU(d, x + k * n + i), top);
    end.v[k] = load_end(x + k * n, n);
    if (whole < n) top = max_of(hn::IfThenElse(fresh, end.v[k], top), top);
    m.v[k] = hn::MaxOfLanes(d, top);
    sum.v[k] = hn::Zero(d);
  }
  if (whole < n) {  // first: y may be x
    end = gn::Sub(end, m);
    const auto e = v_exp_or_zero(d, end, least);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sum.v[k] = hn::IfThenElseZero(fresh, e.v[k]);
    if (!kLogarithm) end = e;
  }
  for (int64_t i = 0; i < whole; i += lanes) {
    Group<V> a;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) a.v[k] = hn::Sub(hn::LoadU(d, x + k * n + i), m.v[k]);
    const auto e = v_exp_or_zero(d, a, least);
    sum = gn::Add(sum, e);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) hn::StoreU(kLogarithm ? a.v[k] : e.v[k], d, y + k * n + i);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const V total = hn::SumOfLanes(d, sum.v[k]);
    r.v[k] =
        kLogarithm ? hn::Set(d, std::log(hn::GetLane(total))) : hn::Div(hn::Set(d, 1.0f), total);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const auto scaled = [&](V v) HWY_ATTR {
      return kLogarithm ? hn::Sub(v, r.v[k]) : hn::Mul(v, r.v[k]);
    };
    for (int64_t i = 0; i < whole; i += lanes)
      hn::StoreU(scaled(hn::LoadU(d, y + k * n + i)), d, y + k * n + i);
    if (whole < n) store_end(scaled(end.v[k]), y + k * n, n);
  }
}

/// Rows in one loop: the powers of a row, the greatest number of the next one and the quotients of
/// the one before, so that none waits for what a row adds up to. y may be x.
template <bool kLogarithm>
void softmax_in_turn(const float* x, float* y, int64_t rows, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = n / lanes * lanes;
  const V least = softmax_least(n);
  V m = hn::Set(d, greatest(x, n)), end = hn::Zero(d), by = end;
  const auto scaled = [&](V v) HWY_ATTR { return kLogarithm ? hn::Sub(v, by) : hn::Mul(v, by); };
  const auto scale = [&](float* at) HWY_ATTR { hn::StoreU(scaled(hn::LoadU(d, at)), d, at); };
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    const float* const next = row + 1 < rows ? x + n : x;
    float* const before = y - n;
    V top = hn::Set(d, next[0]), top1 = top, sum = hn::Zero(d), sum1 = sum, own_end = sum;
    if (whole < n) {  // first: y may be x
      const V a = hn::Sub(hn::LoadU(d, x + n - lanes), m), e = v_exp_or_zero(d, a, least);
      sum1 = hn::IfThenElseZero(new_lanes(n), e);
      own_end = kLogarithm ? a : e;
    }
    const auto one = [&](int64_t i, V & most, V & all) HWY_ATTR __attribute__((always_inline)) {
      const V a = hn::Sub(hn::LoadU(d, x + i), m), e = v_exp_or_zero(d, a, least);
      most = max_of(hn::LoadU(d, next + i), most);
      all = hn::Add(all, e);
      hn::StoreU(kLogarithm ? a : e, d, y + i);
    };
    const auto four = [&](int64_t i) HWY_ATTR __attribute__((always_inline)) {
      const auto a = gn::Sub(gn::Load(d, x + i), m);
      const auto e = v_exp_or_zero(d, a, least);
      const auto after = gn::Load(d, next + i);
      top = max_of(after.v[1], max_of(after.v[0], top));
      top1 = max_of(after.v[3], max_of(after.v[2], top1));
      sum = hn::Add(sum, hn::Add(e.v[0], e.v[1]));
      sum1 = hn::Add(sum1, hn::Add(e.v[2], e.v[3]));
      gn::Store(kLogarithm ? a : e, d, y + i);
    };
    const auto pass = [&](auto is_first) HWY_ATTR __attribute__((always_inline)) {
      constexpr int kStep = kGroup == 4 ? 4 : 2;
      int64_t i = 0;
      for (; i + kStep * lanes <= whole; i += kStep * lanes) {
        for (int64_t line = i; line < i + kStep * lanes; line += kLine) {
          __builtin_prefetch(x + 2 * n + line);
          __builtin_prefetch(y + n + line, 1);
        }
        if constexpr (kStep == 4) {
          four(i);
        } else {
          one(i, top, sum);
          one(i + lanes, top1, sum1);
        }
        if constexpr (!is_first)
#pragma GCC unroll 4
          for (int v = 0; v < kStep; ++v) scale(before + i + v * lanes);
      }
      for (; i < whole; i += lanes) {
        one(i, top, sum);
        if constexpr (!is_first) scale(before + i);
      }
    };
    if (row == 0) {
      pass(std::true_type());
    } else {
      pass(std::false_type());
      if (whole < n) hn::StoreU(scaled(end), d, before + n - lanes);
    }
    top1 = max_of(hn::LoadU(d, next + n - lanes), top1);  // some of them again
    m = hn::MaxOfLanes(d, max_of(top, top1));
    const float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, sum1)));
    by = hn::Set(d, kLogarithm ? std::log(total) : 1 / total);
    end = own_end;
  }
  for (int64_t i = 0; i < whole; i += lanes) scale(y - n + i);
  if (whole < n) hn::StoreU(scaled(end), d, y - lanes);
}

template <bool kLogarithm>
void softmax_rows_of(const float* x, float* y, int64_t rows, int64_t n) {
  // Of longer ones the second cache does not hold three.
  constexpr int64_t kMost = 16384;
  const int64_t least = kGroup == 4 ? kTogether + 1 : 2 * static_cast<int64_t>(hn::Lanes(F()));
  if (rows > 0 && n >= least && n <= kMost) return softmax_in_turn<kLogarithm>(x, y, rows, n);
  if constexpr (kGroup == 4)
    for (; n <= kTogether && rows >= 4; rows -= 4, x += 4 * n, y += 4 * n)
      softmax_of_four<kLogarithm>(x, y, n);
  for (; rows > 0; --rows, x += n, y += n) softmax_of<kLogarithm>(x, y, n);
}
void softmax(const float* x, float* y, int64_t rows, int64_t n, bool logarithm) {
  if (logarithm)
    softmax_rows_of<true>(x, y, rows, n);
  else
    softmax_rows_of<false>(x, y, rows, n);
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
      hn::Store(i == 0 ? a : max_of(a, hn::Load(d, most + j)), d, most + j);
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
void softmax_rows(const float* x, float* y, int64_t rows, int64_t n, bool logarithm) {
  TOMBOLO_TARGET(void(const float*, float*, int64_t, int64_t, bool), softmax)
  (x, y, rows, n, logarithm);
}
void softmax_columns(const float* x, float* y, int64_t n, int64_t step, int64_t width,
                     bool logarithm) {
  const int64_t padded = (width + kLine - 1) / kLine * kLine;
  float* room = thread_floats(0, static_cast<size_t>(n * padded));
  TOMBOLO_TARGET(void(const float*, float*, int64_t, int64_t, int64_t, bool, float*), softmax_down)
  (x, y, n, step, width, logarithm, room);
}

}  // namespace tombolo
#endif
