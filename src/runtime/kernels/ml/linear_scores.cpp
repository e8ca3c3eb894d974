#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/ml/linear_scores.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/ml/linear_scores.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using D = hn::ScalableTag<double>;

// Vectors along the features.

/// A vector's lanes added up until 16 bytes of them are left.
template <class Tag, class V>
HWY_INLINE auto fold_to_block(Tag d, V v) {
  if constexpr (hn::MaxLanes(d) * sizeof(hn::TFromD<Tag>) > 16) {
    const hn::Half<Tag> half;
    return fold_to_block(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

/// to[i] += sum of the lanes of s[i]
template <class V>
HWY_INLINE void add_four_sums(F d, const V (&s)[4], float* to) {
  const hn::FixedTag<float, 4> four;
  const auto a = fold_to_block(d, s[0]), b = fold_to_block(d, s[1]);
  const auto c = fold_to_block(d, s[2]), e = fold_to_block(d, s[3]);
  const auto ab = hn::Add(hn::InterleaveLower(four, a, b), hn::InterleaveUpper(four, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(four, c, e), hn::InterleaveUpper(four, c, e));
  const auto all = hn::Add(hn::ConcatLowerLower(four, ce, ab), hn::ConcatUpperUpper(four, ce, ab));
  hn::StoreU(hn::Add(hn::LoadU(four, to), all), four, to);
}
template <class V>
HWY_INLINE void add_four_sums(D d, const V (&s)[4], double* to) {
  const hn::FixedTag<double, 2> two;
#pragma GCC unroll 2
  for (int i = 0; i < 4; i += 2) {
    const auto a = fold_to_block(d, s[i]), b = fold_to_block(d, s[i + 1]);
    const auto ab = hn::Add(hn::InterleaveLower(two, a, b), hn::InterleaveUpper(two, a, b));
    hn::StoreU(hn::Add(hn::LoadU(two, to + i), ab), two, to + i);
  }
}

/// n features of kR rows (one or four) with those of kT targets. The rows after them come from
/// memory meanwhile where `ahead` says so.
template <int kR, int kT, typename T>
void dot_tile(const T* x, int64_t features, const T* w, int64_t padded, int64_t n, bool ahead,
              T* scores) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kT][kR];
#pragma GCC unroll 8
  for (int t = 0; t < kT; ++t)
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r) sum[t][r] = hn::Zero(d);
  const auto step = [&](int64_t i, auto&& load) HWY_ATTR __attribute__((always_inline)) {
    // Weights stay in registers: so twelve sums leave enough of sixteen.
    V weight[kT];
#pragma GCC unroll 8
    for (int t = 0; t < kT; ++t) {
      weight[t] = hn::LoadU(d, w + t * padded + i);
      keep_in_register(weight[t]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r) {
      if (ahead) __builtin_prefetch(x + (kR + r) * features + i);
      V row = load(x + r * features + i);
      keep_in_register(row);
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t) add_product(sum[t][r], row, weight[t]);
    }
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    step(i, [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); });
  if (i < n) step(i, [&](const T* from) HWY_ATTR { return load_n(d, from, n - i); });
#pragma GCC unroll 8
  for (int t = 0; t < kT; ++t) {
    if constexpr (kR == 4)
      add_four_sums(d, sum[t], scores + t * kLinearRows);
    else
      scores[t * kLinearRows] += hn::GetLane(hn::SumOfLanes(d, sum[t][0]));
  }
}

/// Targets kT at a time, then the rest with what is next lower.
template <int kR, int kT, typename T>
void dot_targets(const T* x, int64_t features, const T* w, int64_t padded, int64_t n, int64_t t,
                 int64_t targets, T* scores) {
  for (; t + kT <= targets; t += kT)
    dot_tile<kR, kT>(x, features, w + t * padded, padded, n, kR > 1 && n >= 256 && t <= kT,
                     scores + t * kLinearRows);
  if constexpr (kT > 1)
    if (t < targets) dot_targets<kR, kT - 1>(x, features, w, padded, n, t, targets, scores);
}

template <typename T>
void dots_of(const T* x, int64_t rows, int64_t features, const T* w, int64_t padded, const T* bias,
             int64_t targets, T* scores) {
  constexpr bool kMany = HWY_LANES(float) == 16;  // registers
  for (int64_t t = 0; t < targets; ++t) std::fill_n(scores + t * kLinearRows, kLinearRows, bias[t]);
  // So many features of four rows stay in the first cache while all targets take them. Of doubles
  // those of some targets do as well.
  constexpr int64_t kStretch = sizeof(T) == 8 ? 256 : 2048;
  for (int64_t i = 0; i < features; i += kStretch) {
    const int64_t n = std::min(kStretch, features - i);
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4)
      dot_targets<4, kMany ? 5 : 3>(x + r * features + i, features, w + i, padded, n, 0, targets,
                                    scores + r);
    for (; r < rows; ++r)
      dot_targets<1, kMany ? 8 : 5>(x + r * features + i, features, w + i, padded, n, 0, targets,
                                    scores + r);
  }
}
void dots_of_floats(const float* x, int64_t rows, int64_t features, const float* w, int64_t padded,
                    const float* bias, int64_t targets, float* scores) {
  dots_of(x, rows, features, w, padded, bias, targets, scores);
}
void dots_of_doubles(const double* x, int64_t rows, int64_t features, const double* w,
                     int64_t padded, const double* bias, int64_t targets, double* scores) {
  dots_of(x, rows, features, w, padded, bias, targets, scores);
}

// Vectors across rows.

/// kT targets at a time.
template <int kT, typename T>
void column_tile(const T* columns, int64_t rows, int64_t features, const T* w, const T* bias,
                 int64_t targets, T* scores) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; r += 2 * lanes) {
    V sum[kT][2];
#pragma GCC unroll 8
    for (int t = 0; t < kT; ++t) sum[t][0] = sum[t][1] = hn::Set(d, bias[t]);
    for (int64_t i = 0; i < features; ++i) {
      const T* from = columns + i * kLinearRows + r;
      const V a = hn::LoadU(d, from), b = hn::LoadU(d, from + lanes);
#pragma GCC unroll 8
      for (int t = 0; t < kT; ++t) {
        const V weight = hn::Set(d, w[i * targets + t]);
        add_product(sum[t][0], a, weight);
        add_product(sum[t][1], b, weight);
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < kT; ++t) {
      hn::StoreU(sum[t][0], d, scores + t * kLinearRows + r);
      hn::StoreU(sum[t][1], d, scores + t * kLinearRows + r + lanes);
    }
  }
}

template <int kT, typename T>
void column_targets(const T* columns, int64_t rows, int64_t features, const T* w, const T* bias,
                    int64_t targets, int64_t t, T* scores) {
  for (; t + kT <= targets; t += kT)
    column_tile<kT>(columns, rows, features, w + t, bias + t, targets, scores + t * kLinearRows);
  if constexpr (kT > 1)
    if (t < targets) column_targets<kT - 1>(columns, rows, features, w, bias, targets, t, scores);
}

constexpr int kMostColumns = HWY_LANES(float) == 16 ? 8 : 5;  // with two sums each
void columns_of_floats(const float* columns, int64_t rows, int64_t features, const float* w,
                       const float* bias, int64_t targets, float* scores) {
  column_targets<kMostColumns>(columns, rows, features, w, bias, targets, 0, scores);
}
void columns_of_doubles(const double* columns, int64_t rows, int64_t features, const double* w,
                        const double* bias, int64_t targets, double* scores) {
  column_targets<kMostColumns>(columns, rows, features, w, bias, targets, 0, scores);
}

// What is made of scores.

void narrow_of(const double* scores, int64_t n, float* to) {
  const D d;
  const hn::Rebind<float, D> df;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(hn::DemoteTo(df, hn::LoadU(d, scores + i)), df, to + i);
}

void softmax_of(float* scores, int64_t targets) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < kLinearRows; r += lanes) {
    auto most = hn::LoadU(d, scores + r), sum = hn::Zero(d);
    for (int64_t t = 1; t < targets; ++t)
      most = max_of(hn::LoadU(d, scores + t * kLinearRows + r), most);
    for (int64_t t = 0; t < targets; ++t) {
      float* at = scores + t * kLinearRows + r;
      const auto power = v_exp_negative(d, hn::Sub(hn::LoadU(d, at), most));
      sum = hn::Add(sum, power);
      hn::StoreU(power, d, at);
    }
    for (int64_t t = 0; t < targets; ++t) {
      float* at = scores + t * kLinearRows + r;
      hn::StoreU(hn::Div(hn::LoadU(d, at), sum), d, at);
    }
  }
}

void logistic_of(float* scores, int64_t targets) {
  const F d;
  for (int64_t i = 0; i < targets * kLinearRows; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(v_sigmoid(d, hn::LoadU(d, scores + i)), d, scores + i);
}

void greatest_of(const float* scores, int64_t targets, int64_t* best) {
  const F d;
  const hn::RebindToSigned<F> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN int32_t places[kLinearRows];
  for (int64_t r = 0; r < kLinearRows; r += lanes) {
    auto most = hn::LoadU(d, scores + r);
    auto place = hn::Zero(di);
    for (int64_t t = 1; t < targets; ++t) {
      const auto score = hn::LoadU(d, scores + t * kLinearRows + r);
      const auto more = hn::Lt(most, score);
      most = hn::IfThenElse(more, score, most);
      place = hn::IfThenElse(hn::RebindMask(di, more), hn::Set(di, static_cast<int32_t>(t)), place);
    }
    hn::Store(place, di, places + r);
  }
  std::copy_n(places, kLinearRows, best);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <>
void linear_dots<float>(const float* x, int64_t rows, int64_t features, const float* w,
                        int64_t padded, const float* bias, int64_t targets, float* scores) {
  using Fn =
      void(const float*, int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*);
  TOMBOLO_TARGET(Fn, dots_of_floats)(x, rows, features, w, padded, bias, targets, scores);
}
template <>
void linear_dots<double>(const double* x, int64_t rows, int64_t features, const double* w,
                         int64_t padded, const double* bias, int64_t targets, double* scores) {
  using Fn = void(const double*, int64_t, int64_t, const double*, int64_t, const double*, int64_t,
                  double*);
  TOMBOLO_TARGET(Fn, dots_of_doubles)(x, rows, features, w, padded, bias, targets, scores);
}
template <>
void linear_columns<float>(const float* x, int64_t rows, int64_t features, const float* w,
                           const float* bias, int64_t targets, float* scores) {
  using Fn = void(const float*, int64_t, int64_t, const float*, const float*, int64_t, float*);
  TOMBOLO_TARGET(Fn, columns_of_floats)(x, rows, features, w, bias, targets, scores);
}
template <>
void linear_columns<double>(const double* x, int64_t rows, int64_t features, const double* w,
                            const double* bias, int64_t targets, double* scores) {
  using Fn = void(const double*, int64_t, int64_t, const double*, const double*, int64_t, double*);
  TOMBOLO_TARGET(Fn, columns_of_doubles)(x, rows, features, w, bias, targets, scores);
}
void narrow_scores(const double* scores, int64_t n, float* to) {
  TOMBOLO_TARGET(void(const double*, int64_t, float*), narrow_of)(scores, n, to);
}
void softmax_scores(float* scores, int64_t targets) {
  TOMBOLO_TARGET(void(float*, int64_t), softmax_of)(scores, targets);
}
void logistic_scores(float* scores, int64_t targets) {
  TOMBOLO_TARGET(void(float*, int64_t), logistic_of)(scores, targets);
}
void greatest_scores(const float* scores, int64_t targets, int64_t* best) {
  TOMBOLO_TARGET(void(const float*, int64_t, int64_t*), greatest_of)(scores, targets, best);
}

}  // namespace tombolo
#endif
