#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/ml/ml_rows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/ml/ml_rows.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using DF = hn::Rebind<float, D>;
using VD = hn::Vec<D>;

HWY_INLINE VD wide(const float* x, int64_t left) {
  return hn::PromoteTo(D(), load_n(DF(), x, left));
}

void widen_of(const float* x, int64_t n, double* to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) store_n(wide(x + i, n - i), d, to + i, n - i);
}

void widen_longs_of(const int64_t* x, int64_t n, double* to) {
  const D d;
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes)
    store_n(hn::ConvertTo(d, load_n(di, x + i, n - i)), d, to + i, n - i);
}

/// kR rows against kV vectors' worth of supports from s on.
template <int kR, int kV, bool kApart, typename T>
HWY_INLINE void svm_strip(const T* x, const T* vectors, int64_t features, int64_t padded, int64_t s,
                          T* out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kR][kV];
#pragma GCC unroll 4
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) sum[r][v] = hn::Zero(d);
  for (int64_t i = 0; i < features; ++i) {
    const T* from = vectors + i * padded + s;
    V part[kV];
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      part[v] = hn::LoadU(d, from + v * lanes);
      keep_in_register(part[v]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r) {
      const V value = hn::Set(d, x[r * features + i]);
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) {
        const V apart = hn::Sub(value, part[v]);
        sum[r][v] =
            kApart ? hn::MulAdd(apart, apart, sum[r][v]) : hn::MulAdd(value, part[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) hn::StoreU(sum[r][v], d, out + r * padded + s + v * lanes);
}

/// kR rows against all vectors.
template <int kR, bool kApart, typename T>
void svm_products(const T* x, const T* vectors, int64_t features, int64_t padded, T* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  // Of what is read a vector meets four rows: it comes from the second cache.
  constexpr int kV = HWY_LANES(double) == 8 || kR < 4 ? 4 : 2;
  int64_t s = 0;
  for (; s + kV * lanes <= padded; s += kV * lanes)
    svm_strip<kR, kV, kApart>(x, vectors, features, padded, s, out);
  for (; s < padded; s += lanes) svm_strip<kR, 1, kApart>(x, vectors, features, padded, s, out);
}

template <bool kApart, typename T>
void svm_products_of(const T* x, int64_t rows, const T* vectors, int64_t features, int64_t padded,
                     T* out) {
  constexpr int kRows = 4;
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows)
    svm_products<kRows, kApart>(x + r * features, vectors, features, padded, out + r * padded);
  if (r + kRows / 2 <= rows) {
    constexpr int kHalf = kRows / 2;
    svm_products<kHalf, kApart>(x + r * features, vectors, features, padded, out + r * padded);
    r += kHalf;
  }
  for (; r < rows; ++r)
    svm_products<1, kApart>(x + r * features, vectors, features, padded, out + r * padded);
}

/// step(y) of each vector of n numbers, a whole number of them.
template <typename Step>
HWY_INLINE void each_vector(double* y, int64_t n, Step&& step) {
  const D d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(step(hn::LoadU(d, y + i)), d, y + i);
}

/// tanh(gamma y + coef0) = 1 - 2 / (e^2(gamma y + coef0) + 1), good to the last bit of 1, not to
/// its own near 0: what counts is its part of a sum. Four vectors share one division, which takes
/// longer than all else.
HWY_INLINE void tanh_of(double* y, int64_t n, VD gamma, VD coef0) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const VD one = hn::Set(d, 1.0), two = hn::Set(d, 2.0), most = hn::Set(d, 40.0);
  for (int64_t i = 0; i < n; i += 4 * lanes) {
    VD x[4], part[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      x[v] = hn::Mul(two, hn::MulAdd(gamma, hn::LoadU(d, y + i + v * lanes), coef0));
      // From 40 on the result is 1.
      part[v] = hn::Add(hn::Exp(d, max_of(hn::Neg(most), min_of(most, x[v]))), one);
    }
    const VD low = hn::Mul(part[0], part[1]), high = hn::Mul(part[2], part[3]);
    const VD all = hn::Div(two, hn::Mul(low, high));
    const VD of_low = hn::Mul(all, high), of_high = hn::Mul(all, low);
    const VD inverse[4] = {hn::Mul(of_low, part[1]), hn::Mul(of_low, part[0]),
                           hn::Mul(of_high, part[3]), hn::Mul(of_high, part[2])};
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v)
      hn::StoreU(hn::IfThenElse(hn::IsNaN(x[v]), x[v], hn::Sub(one, inverse[v])), d,
                 y + i + v * lanes);
  }
}

void values_of(const SvmParameters& p, const double* x, int64_t rows, const double* vectors,
               int64_t features, int64_t padded, double* out) {
  const D d;
  if (p.kind == SvmKind::kRbf)
    svm_products_of<true>(x, rows, vectors, features, padded, out);
  else
    svm_products_of<false>(x, rows, vectors, features, padded, out);
  const VD gamma = hn::Set(d, p.gamma), coef0 = hn::Set(d, p.coef0);
  const int64_t n = rows * padded;
  if (p.kind == SvmKind::kRbf) {
    const VD by = hn::Set(d, -p.gamma);
    each_vector(out, n, [&](VD y) HWY_ATTR {
      y = hn::Mul(by, y);
      // Where the vector function is not good: NaN, and beyond what a double holds.
      const auto good = hn::And(hn::Ge(y, hn::Set(d, -700.0)), hn::Le(y, hn::Set(d, 700.0)));
      if (hn::AllTrue(d, good)) return hn::Exp(d, y);
      HWY_ALIGN double parts[HWY_LANES(double)];
      hn::Store(y, d, parts);
      for (double& part : parts) part = std::exp(part);
      return hn::Load(d, parts);
    });
  } else if (p.kind == SvmKind::kSigmoid) {
    tanh_of(out, n, gamma, coef0);
  } else if (p.kind == SvmKind::kPoly && p.degree >= 1 && p.degree <= 8 &&
             p.degree == std::floor(p.degree)) {
    each_vector(out, n, [&](VD y) HWY_ATTR {
      y = hn::MulAdd(gamma, y, coef0);
      VD power = y;
      for (int i = 1; i < static_cast<int>(p.degree); ++i) power = hn::Mul(power, y);
      return power;
    });
  } else if (p.kind == SvmKind::kPoly) {
    for (int64_t i = 0; i < n; ++i) out[i] = std::pow(p.gamma * out[i] + p.coef0, p.degree);
  }
}

/// The same in float, of polynomials and the sigmoid.
void narrow_values_of(const SvmParameters& p, const float* x, int64_t rows, const float* vectors,
                      int64_t features, int64_t padded, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  svm_products_of<false>(x, rows, vectors, features, padded, out);
  const auto gamma = hn::Set(d, static_cast<float>(p.gamma));
  const auto coef0 = hn::Set(d, static_cast<float>(p.coef0));
  const int64_t n = rows * padded;
  const auto degree = static_cast<int>(p.degree);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto y = hn::MulAdd(gamma, hn::LoadU(d, out + i), coef0);
    auto result = y;
    if (p.kind == SvmKind::kSigmoid)
      result = v_tanh(d, y);
    else
      for (int k = 1; k < degree; ++k) result = hn::Mul(result, y);
    hn::StoreU(result, d, out + i);
  }
}

double dot_of(const double* a, const double* b, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VD s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), s1);
  }
  for (; i < n; i += lanes) s0 = hn::MulAdd(load_n(d, a + i, n - i), load_n(d, b + i, n - i), s0);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

void scale_of(const float* x, const double* offset, const double* scale, int64_t n, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const VD v = hn::Mul(hn::Sub(wide(x + i, left), load_n(d, offset + i, left)),
                         load_n(d, scale + i, left));
    store_n(hn::DemoteTo(DF(), v), DF(), y + i, left);
  }
}

template <typename T>
void impute_any(const T* x, T marker, const T* by, int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto run = [&](auto&& missing) HWY_ATTR __attribute__((always_inline)) {
    for (int64_t i = 0; i < n; i += lanes) {
      const auto given = load_n(d, x + i, n - i);
      store_n(hn::IfThenElse(missing(given), load_n(d, by + i, n - i), given), d, y + i, n - i);
    }
  };
  if constexpr (!std::is_integral_v<T>)
    if (marker != marker) return run([](auto given) HWY_ATTR { return hn::IsNaN(given); });
  const auto missing = hn::Set(d, marker);
  run([&](auto given) HWY_ATTR { return hn::Eq(given, missing); });
}
void impute_floats(const float* x, float marker, const float* by, int64_t n, float* y) {
  impute_any(x, marker, by, n, y);
}
void impute_doubles(const double* x, double marker, const double* by, int64_t n, double* y) {
  impute_any(x, marker, by, n, y);
}
void impute_longs(const int64_t* x, int64_t marker, const int64_t* by, int64_t n, int64_t* y) {
  impute_any(x, marker, by, n, y);
}

HWY_INLINE VD wide(const double* x, int64_t left) { return load_n(D(), x, left); }

/// What a row is divided by, but for zero.
template <typename T>
HWY_INLINE double norm_of_row(RowNorm norm, const T* x, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (norm == RowNorm::kMax) {
    const hn::ScalableTag<T> df;
    const auto wide_lanes = static_cast<int64_t>(hn::Lanes(df));
    constexpr T kLeast = -std::numeric_limits<T>::infinity();
    auto most = hn::Set(df, kLeast);
    int64_t i = 0;
    for (; i + wide_lanes <= n; i += wide_lanes) most = max_of(hn::LoadU(df, x + i), most);
    T rest = i > 0 ? hn::GetLane(hn::MaxOfLanes(df, most)) : kLeast;
    for (; i < n; ++i) rest = x[i] > rest ? x[i] : rest;
    if (rest > kLeast) return static_cast<double>(rest);
    // Nothing but infinity below zero, and what is no number.
    for (i = 0, rest = x[0]; i < n; ++i) rest = std::fmax(rest, x[i]);
    return static_cast<double>(rest);
  }
  VD sum = hn::Zero(d);
  for (int64_t i = 0; i < n; i += lanes) {
    const VD v = wide(x + i, n - i);
    sum = norm == RowNorm::kL1 ? hn::Add(sum, hn::Abs(v)) : hn::MulAdd(v, v, sum);
  }
  const double total = hn::GetLane(hn::SumOfLanes(d, sum));
  return norm == RowNorm::kL2 ? std::sqrt(total) : total;
}

template <typename T>
void divide_rows(RowNorm norm, const T* x, int64_t rows, int64_t n, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; rows > 0; --rows, x += n, y += n) {
    const double divisor = norm_of_row(norm, x, n);
    // In double the product with the reciprocal differs less than rounding to float does.
    const VD by = hn::Set(d, divisor == 0 ? 1.0 : 1 / divisor);
    for (int64_t i = 0; i < n; i += lanes)
      store_n(hn::DemoteTo(DF(), hn::Mul(wide(x + i, n - i), by)), DF(), y + i, n - i);
  }
}
void norm_of(RowNorm norm, const float* x, int64_t rows, int64_t n, float* y) {
  divide_rows(norm, x, rows, n, y);
}
void wide_norm_of(RowNorm norm, const double* x, int64_t rows, int64_t n, float* y) {
  divide_rows(norm, x, rows, n, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void widen_floats(const float* x, int64_t n, double* to) {
  TOMBOLO_TARGET(void(const float*, int64_t, double*), widen_of)(x, n, to);
}
void widen_longs(const int64_t* x, int64_t n, double* to) {
  TOMBOLO_TARGET(void(const int64_t*, int64_t, double*), widen_longs_of)(x, n, to);
}
void svm_values(const SvmParameters& parameters, const double* x, int64_t rows,
                const double* vectors, int64_t features, int64_t padded, double* out) {
  using Fn =
      void(const SvmParameters&, const double*, int64_t, const double*, int64_t, int64_t, double*);
  TOMBOLO_TARGET(Fn, values_of).get()(parameters, x, rows, vectors, features, padded, out);
}
void svm_values(const SvmParameters& parameters, const float* x, int64_t rows, const float* vectors,
                int64_t features, int64_t padded, float* out) {
  using Fn =
      void(const SvmParameters&, const float*, int64_t, const float*, int64_t, int64_t, float*);
  TOMBOLO_TARGET(Fn, narrow_values_of).get()(parameters, x, rows, vectors, features, padded, out);
}
double dot_f64(const double* a, const double* b, int64_t n) {
  return TOMBOLO_TARGET(double(const double*, const double*, int64_t), dot_of)(a, b, n);
}
void scale_features(const float* x, const double* offset, const double* scale, int64_t n,
                    float* y) {
  TOMBOLO_TARGET(void(const float*, const double*, const double*, int64_t, float*), scale_of)
  (x, offset, scale, n, y);
}
template <>
void impute<float>(const float* x, float marker, const float* by, int64_t n, float* y) {
  TOMBOLO_TARGET(void(const float*, float, const float*, int64_t, float*), impute_floats)
  (x, marker, by, n, y);
}
template <>
void impute<double>(const double* x, double marker, const double* by, int64_t n, double* y) {
  TOMBOLO_TARGET(void(const double*, double, const double*, int64_t, double*), impute_doubles)
  (x, marker, by, n, y);
}
template <>
void impute<int64_t>(const int64_t* x, int64_t marker, const int64_t* by, int64_t n, int64_t* y) {
  TOMBOLO_TARGET(void(const int64_t*, int64_t, const int64_t*, int64_t, int64_t*), impute_longs)
  (x, marker, by, n, y);
}
void divide_by_norm(RowNorm norm, const float* x, int64_t rows, int64_t n, float* y) {
  TOMBOLO_TARGET(void(RowNorm, const float*, int64_t, int64_t, float*), norm_of)
  (norm, x, rows, n, y);
}

void divide_by_norm(RowNorm norm, const double* x, int64_t rows, int64_t n, float* y) {
  TOMBOLO_TARGET(void(RowNorm, const double*, int64_t, int64_t, float*), wide_norm_of)
  (norm, x, rows, n, y);
}

}  // namespace tombolo
#endif
