#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/ml_rows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/ml_rows.h"
#include "runtime/kernels/transpose_tile.h"
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

/// Vectors run across rows, turned before in `columns` [feature][kLinearRows]; kT targets at a
/// time.
template <int kT>
void score_columns(const float* columns, int64_t features, const double* w, const double* bias,
                   int64_t targets, int64_t rows, double* scores) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN double parts[HWY_LANES(double)];
  for (int64_t r = 0; r < rows; r += 2 * lanes) {
    VD sum[kT][2];
#pragma GCC unroll 4
    for (int t = 0; t < kT; ++t) sum[t][0] = sum[t][1] = hn::Set(d, bias[t]);
    for (int64_t i = 0; i < features; ++i) {
      const float* from = columns + i * kLinearRows + r;
      const VD a = hn::PromoteTo(d, hn::LoadU(DF(), from)),
               b = hn::PromoteTo(d, hn::LoadU(DF(), from + lanes));
#pragma GCC unroll 4
      for (int t = 0; t < kT; ++t) {
        const VD weight = hn::Set(d, w[i * targets + t]);
        sum[t][0] = hn::MulAdd(a, weight, sum[t][0]);
        sum[t][1] = hn::MulAdd(b, weight, sum[t][1]);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < kT; ++t)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        hn::Store(sum[t][v], d, parts);
        for (int64_t j = 0; j < lanes && r + v * lanes + j < rows; ++j)
          scores[(r + v * lanes + j) * targets + t] = parts[j];
      }
  }
}

void scores_of(const float* columns, int64_t rows, int64_t features, const double* w,
               const double* bias, int64_t targets, double* scores) {
  int64_t t = 0;
  for (; t + 4 <= targets; t += 4)
    score_columns<4>(columns, features, w + t, bias + t, targets, rows, scores + t);
  if (targets - t == 3)
    score_columns<3>(columns, features, w + t, bias + t, targets, rows, scores + t);
  if (targets - t == 2)
    score_columns<2>(columns, features, w + t, bias + t, targets, rows, scores + t);
  if (targets - t == 1)
    score_columns<1>(columns, features, w + t, bias + t, targets, rows, scores + t);
}

void values_of(const SvmParameters& p, const float* x, const double* vectors, int64_t features,
               int64_t padded, double* out) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool rbf = p.kind == SvmKind::kRbf;
  for (int64_t s = 0; s < padded; s += 4 * lanes) {
    VD sum[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[v] = hn::Zero(d);
    for (int64_t i = 0; i < features; ++i) {
      const VD value = hn::Set(d, static_cast<double>(x[i]));
      const double* from = vectors + i * padded + s;
      if (rbf) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          const VD apart = hn::Sub(value, hn::LoadU(d, from + v * lanes));
          sum[v] = hn::MulAdd(apart, apart, sum[v]);
        }
      } else {
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v)
          sum[v] = hn::MulAdd(value, hn::LoadU(d, from + v * lanes), sum[v]);
      }
    }
    for (int v = 0; v < 4; ++v) {
      VD y = sum[v];
      if (rbf) {
        y = hn::Mul(hn::Set(d, -p.gamma), y);
        // Where the vector function is not good: NaN, and beyond what a double holds.
        const auto good = hn::And(hn::Ge(y, hn::Set(d, -700.0)), hn::Le(y, hn::Set(d, 700.0)));
        if (hn::AllTrue(d, good)) {
          y = hn::Exp(d, y);
        } else {
          HWY_ALIGN double parts[HWY_LANES(double)];
          hn::Store(y, d, parts);
          for (double& part : parts) part = std::exp(part);
          y = hn::Load(d, parts);
        }
      }
      hn::StoreU(y, d, out + s + v * lanes);
    }
  }
  if (p.kind == SvmKind::kPoly)
    for (int64_t s = 0; s < padded; ++s) out[s] = std::pow(p.gamma * out[s] + p.coef0, p.degree);
  if (p.kind == SvmKind::kSigmoid)
    for (int64_t s = 0; s < padded; ++s) out[s] = std::tanh(p.gamma * out[s] + p.coef0);
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

void norm_of(RowNorm norm, const float* x, int64_t n, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double divisor;
  if (norm == RowNorm::kMax) {
    divisor = static_cast<double>(x[0]);
    for (int64_t i = 1; i < n; ++i) divisor = std::fmax(divisor, static_cast<double>(x[i]));
  } else {
    VD sum = hn::Zero(d);
    for (int64_t i = 0; i < n; i += lanes) {
      const VD v = wide(x + i, n - i);
      sum = norm == RowNorm::kL1 ? hn::Add(sum, hn::Abs(v)) : hn::MulAdd(v, v, sum);
    }
    divisor = hn::GetLane(hn::SumOfLanes(d, sum));
    if (norm == RowNorm::kL2) divisor = std::sqrt(divisor);
  }
  const VD by = hn::Set(d, divisor == 0 ? 1.0 : divisor);
  for (int64_t i = 0; i < n; i += lanes)
    store_n(hn::DemoteTo(DF(), hn::Div(wide(x + i, n - i), by)), DF(), y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void linear_scores(const float* x, int64_t rows, int64_t features, const double* w,
                   const double* bias, int64_t targets, float* room, double* scores) {
  transpose_tile(reinterpret_cast<const std::byte*>(x), features,
                 reinterpret_cast<std::byte*>(room), kLinearRows, rows, features, sizeof(float));
  for (int64_t i = 0; rows < kLinearRows && i < features; ++i)
    std::fill(room + i * kLinearRows + rows, room + (i + 1) * kLinearRows, 0.0f);
  TOMBOLO_TARGET(
      void(const float*, int64_t, int64_t, const double*, const double*, int64_t, double*),
      scores_of)
  (room, rows, features, w, bias, targets, scores);
}
void svm_values(const SvmParameters& parameters, const float* x, const double* vectors,
                int64_t features, int64_t padded, double* out) {
  using Fn = void(const SvmParameters&, const float*, const double*, int64_t, int64_t, double*);
  TOMBOLO_TARGET(Fn, values_of).get()(parameters, x, vectors, features, padded, out);
}
double dot_f64(const double* a, const double* b, int64_t n) {
  return TOMBOLO_TARGET(double(const double*, const double*, int64_t), dot_of)(a, b, n);
}
void scale_features(const float* x, const double* offset, const double* scale, int64_t n,
                    float* y) {
  TOMBOLO_TARGET(void(const float*, const double*, const double*, int64_t, float*), scale_of)
  (x, offset, scale, n, y);
}
void divide_by_norm(RowNorm norm, const float* x, int64_t n, float* y) {
  TOMBOLO_TARGET(void(RowNorm, const float*, int64_t, float*), norm_of)(norm, x, n, y);
}

}  // namespace tombolo
#endif
