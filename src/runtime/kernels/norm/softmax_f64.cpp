#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/norm/softmax_f64.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/norm/softmax_f64.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

/// e^x for x <= 0; NaN for NaN. From -708 on a double no longer holds it well: 0.
HWY_INLINE V exp_negative(V x) {
  const D d;
  const V least = hn::Set(d, -700.0);
  const V power = hn::Exp(d, max_of(least, x));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenZeroElse(hn::Lt(x, least), power));
}

/// Columns [n][kSoftmaxDoubles] in place.
void columns_of_doubles(double* columns, int64_t n, bool logarithm) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < kSoftmaxDoubles; r += lanes) {
    V most = hn::LoadU(d, columns + r), sum = hn::Zero(d);
    for (int64_t i = 1; i < n; ++i)
      most = max_of(hn::LoadU(d, columns + i * kSoftmaxDoubles + r), most);
    for (int64_t i = 0; i < n; ++i) {
      double* at = columns + i * kSoftmaxDoubles + r;
      const V apart = hn::Sub(hn::LoadU(d, at), most);
      const V power = exp_negative(apart);
      sum = hn::Add(sum, power);
      hn::StoreU(logarithm ? apart : power, d, at);
    }
    if (logarithm) {
      HWY_ALIGN double logs[HWY_LANES(double)];
      hn::Store(sum, d, logs);
      for (double& each : logs) each = std::log(each);
      sum = hn::Load(d, logs);
    }
    for (int64_t i = 0; i < n; ++i) {
      double* at = columns + i * kSoftmaxDoubles + r;
      const V v = hn::LoadU(d, at);
      hn::StoreU(logarithm ? hn::Sub(v, sum) : hn::Div(v, sum), d, at);
    }
  }
}

void row_of_doubles(const double* x, double* y, int64_t n, bool logarithm) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double most = x[0];
  V highest = hn::Set(d, most);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) highest = max_of(hn::LoadU(d, x + i), highest);
  most = hn::GetLane(hn::MaxOfLanes(d, highest));
  for (; i < n; ++i) most = x[i] > most ? x[i] : most;
  V sum = hn::Zero(d);
  for (i = 0; i < n; i += lanes) {
    const V apart = hn::Sub(load_n(d, x + i, n - i), hn::Set(d, most));
    const V power = exp_negative(apart);
    store_n(logarithm ? apart : power, d, y + i, n - i);
    const auto inside = hn::FirstN(d, static_cast<size_t>(std::min(lanes, n - i)));
    sum = hn::Add(sum, hn::IfThenElseZero(inside, power));
  }
  const double total = hn::GetLane(hn::SumOfLanes(d, sum));
  const V by = hn::Set(d, logarithm ? std::log(total) : total);
  for (i = 0; i < n; i += lanes) {
    const V v = load_n(d, y + i, n - i);
    store_n(logarithm ? hn::Sub(v, by) : hn::Div(v, by), d, y + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void softmax_columns(const double* x, double* y, int64_t n, int64_t step, int64_t width,
                     bool logarithm) {
  std::vector<double> columns(static_cast<size_t>(n * kSoftmaxDoubles));
  for (int64_t i = 0; i < n; ++i)
    std::copy_n(x + i * step, width, columns.data() + i * kSoftmaxDoubles);
  TOMBOLO_TARGET(void(double*, int64_t, bool), columns_of_doubles)(columns.data(), n, logarithm);
  for (int64_t i = 0; i < n; ++i)
    std::copy_n(columns.data() + i * kSoftmaxDoubles, width, y + i * step);
}

void softmax_rows(const double* x, double* y, int64_t rows, int64_t n, bool logarithm) {
  constexpr int64_t kShort = 64;  // longer rows fill vectors themselves
  if (n <= kShort && rows >= 8) {
    std::vector<double> columns(static_cast<size_t>(n * kSoftmaxDoubles));
    for (; rows > 0; rows -= kSoftmaxDoubles, x += n * kSoftmaxDoubles, y += n * kSoftmaxDoubles) {
      const int64_t some = std::min(rows, kSoftmaxDoubles);
      transpose_tile(reinterpret_cast<const std::byte*>(x), n,
                     reinterpret_cast<std::byte*>(columns.data()), kSoftmaxDoubles, some, n,
                     sizeof(double));
      TOMBOLO_TARGET(void(double*, int64_t, bool), columns_of_doubles)
      (columns.data(), n, logarithm);
      transpose_tile(reinterpret_cast<const std::byte*>(columns.data()), kSoftmaxDoubles,
                     reinterpret_cast<std::byte*>(y), n, n, some, sizeof(double));
    }
    return;
  }
  for (; rows > 0; --rows, x += n, y += n)
    TOMBOLO_TARGET(void(const double*, double*, int64_t, bool), row_of_doubles)(x, y, n, logarithm);
}

}  // namespace tombolo
#endif
