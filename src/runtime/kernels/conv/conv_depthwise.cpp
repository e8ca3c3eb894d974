// Convolution with one input channel a group. An output's window lies at the same distances in the
// padded image whatever its row. Rows that fill vectors are written as they are made; narrow ones
// are one long row, so that vectors run over row ends, and what they compute between rows is not
// copied.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/conv_depthwise.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_DEPTHWISE_TASK
#define TOMBOLO_DEPTHWISE_TASK
namespace tombolo {
namespace {

/// A slice of an output channel. Whole vectors of the image are read.
struct DepthwiseTask {
  const float* image;
  int64_t columns;  ///< of an image row
  const int64_t* taps;
  const float* w;
  int64_t count;     ///< of taps
  int64_t adjacent;  ///< the height and width of a kernel whose taps are neighbours, or 0
  int64_t rows, n;
  float bias;
  const float* residual;  ///< or null
  bool clamp;
  float lo, hi;
  float* y;
};

}  // namespace
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;

/// out[i] = sum over taps of w[t] * x[taps[t] + i]. Reads and writes whole
/// vectors.
void correlate(const float* HWY_RESTRICT x, const int64_t* HWY_RESTRICT taps,
               const float* HWY_RESTRICT w, int64_t count, int64_t n, float* HWY_RESTRICT out) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  int64_t i = 0;
  for (; i + 8 * lanes <= n + lanes - 1; i += 8 * lanes) {
    hn::Vec<F> s[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) s[v] = hn::Zero(f);
    for (int64_t t = 0; t < count; ++t) {
      const auto weight = hn::Set(f, w[t]);
      const float* from = x + taps[t] + i;
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) s[v] = hn::MulAdd(weight, hn::LoadU(f, from + v * lanes), s[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) hn::StoreU(s[v], f, out + i + v * lanes);
  }
  for (; i < n; i += lanes) {
    auto s = hn::Zero(f);
    for (int64_t t = 0; t < count; ++t)
      s = hn::MulAdd(hn::Set(f, w[t]), hn::LoadU(f, x + taps[t] + i), s);
    hn::StoreU(s, f, out + i);
  }
}

/// Writes a vector of sums, or the `left` first ones of it.
HWY_INLINE void finish_sum(const DepthwiseTask& t, hn::Vec<F> sum, int64_t at, int64_t left) {
  const F f;
  sum = hn::Add(sum, hn::Set(f, t.bias));
  if (t.residual != nullptr) sum = hn::Add(sum, load_n(f, t.residual + at, left));
  if (t.clamp) sum = min_of(hn::Set(f, t.hi), max_of(hn::Set(f, t.lo), sum));
  store_n(sum, f, t.y + at, left);
}

/// kVectors from column j on of kRows rows, the first of which is `row`.
template <int kRows, int kVectors>
HWY_INLINE void sum_block(const DepthwiseTask& t, int64_t row, int64_t j) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  hn::Vec<F> s[kRows * kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows * kVectors; ++i) s[i] = hn::Zero(f);
  const float* image = t.image + row * t.columns + j;
  const int64_t columns = t.columns, count = t.count;
  for (int64_t k = 0; k < count; ++k) {
    const auto weight = hn::Set(f, t.w[k]);
    const float* from = image + t.taps[k];
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kVectors; ++i)
      s[i] = hn::MulAdd(weight, hn::LoadU(f, from + i / kVectors * columns + i % kVectors * lanes),
                        s[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows * kVectors; ++i) {
    const int64_t at = j + i % kVectors * lanes;
    finish_sum(t, s[i], (row + i / kVectors) * t.n + at, t.n - at);
  }
}
/// kVectors from column j on of all rows.
template <int kVectors>
void sum_columns(const DepthwiseTask& t, int64_t j) {
  constexpr int kRows = 8 / kVectors;
  int64_t row = 0;
  for (; row + kRows <= t.rows; row += kRows) sum_block<kRows, kVectors>(t, row, j);
  for (; row < t.rows; ++row) sum_block<1, kVectors>(t, row, j);
}

/// A vector of kRows rows for a kernel of kSize x kSize neighbours: what is loaded serves all rows.
template <int kRows, int kSize>
HWY_INLINE void sum_adjacent(const DepthwiseTask& t, const hn::Vec<F>* w, int64_t row, int64_t j) {
  const F f;
  hn::Vec<F> s[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) s[r] = hn::Zero(f);
  const float* from = t.image + row * t.columns + j;
#pragma GCC unroll 8
  for (int i = 0; i < kRows + kSize - 1; ++i, from += t.columns)
#pragma GCC unroll 5
    for (int k = 0; k < kSize; ++k) {
      auto x = hn::LoadU(f, from + k);
      keep_in_register(x);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        if (r <= i && i < r + kSize) s[r] = hn::MulAdd(w[(i - r) * kSize + k], x, s[r]);
    }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) finish_sum(t, s[r], (row + r) * t.n + j, t.n - j);
}
template <int kSize>
void sum_all_adjacent(const DepthwiseTask& task) {
  const F f;
  const DepthwiseTask t = task;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  constexpr int kRows = 4;
  hn::Vec<F> w[kSize * kSize];
#pragma GCC unroll 25
  for (int k = 0; k < kSize * kSize; ++k) w[k] = hn::Set(f, t.w[k]);
  int64_t row = 0;
  for (; row + kRows <= t.rows; row += kRows)
    for (int64_t j = 0; j < t.n; j += lanes) sum_adjacent<kRows, kSize>(t, w, row, j);
  for (; row < t.rows; ++row)
    for (int64_t j = 0; j < t.n; j += lanes) sum_adjacent<1, kSize>(t, w, row, j);
}

/// False: rows are so narrow that one long row takes less.
bool sum_rows(const DepthwiseTask& t) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  if (t.n <= lanes / 2) return false;
  if (t.adjacent == 3) {
    sum_all_adjacent<3>(t);
    return true;
  }
#if HWY_TARGET <= HWY_AVX3  // 25 weights stay in registers
  if (t.adjacent == 5) {
    sum_all_adjacent<5>(t);
    return true;
  }
#endif
  int64_t j = 0;
  for (; j + 3 * lanes < t.n; j += 4 * lanes) sum_columns<4>(t, j);
  for (; j + lanes < t.n; j += 2 * lanes) sum_columns<2>(t, j);
  if (j < t.n) sum_columns<1>(t, j);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void correlate_flat(const float* x, const int64_t* taps, const float* w, int64_t count, int64_t n,
                    float* out) {
  using Fn = void(const float*, const int64_t*, const float*, int64_t, int64_t, float*);
  TOMBOLO_TARGET(Fn, correlate)(x, taps, w, count, n, out);
}

void run_depthwise(const ConvPlan& plan, const float* x, const float* packed, float* y,
                   const ConvEpilogue& epilogue, float*) {
  const ConvGeometry& s = plan.shape;
  const auto& kernel = TOMBOLO_TARGET(
      void(const float*, const int64_t*, const float*, int64_t, int64_t, float*), correlate);
  const auto& rows_kernel = TOMBOLO_TARGET(bool(const DepthwiseTask&), sum_rows);
  const int64_t pixels = s.out_plane(), taps = s.taps();
  const int64_t flat = (s.out[1] - 1) * plan.image.columns + s.out[2];
  if (pixels == 0) return;
  int64_t adjacent = s.kernel[1] == s.kernel[2] && s.kernel[0] == 1 ? s.kernel[1] : 0;
  for (int64_t k = 0; k < taps && adjacent != 0; ++k)
    if (plan.image.taps[static_cast<size_t>(k)] != k / adjacent * plan.image.columns + k % adjacent)
      adjacent = 0;
  constexpr int64_t kSlack = 256;  // whole vectors are read and written
  parallel(
      s.batch * s.groups, std::max<int64_t>(1, 16384 / (pixels * taps)),
      [&](int64_t begin, int64_t end) {
        const int64_t plane = std::max(plan.image.plane, s.in_plane());
        float* image = thread_floats(1, static_cast<size_t>(plane + kSlack));
        float* sums = thread_floats(2, static_cast<size_t>(flat + kSlack));
        std::fill_n(image + plane, kSlack, 0.0f);
        for (int64_t task = begin; task < end; ++task) {
          const float* from = x + task * s.in_plane();
          if (plan.image.copy)
            split_image(s, plan.image, from, 0, image);
          else
            std::copy_n(from, s.in_plane(), image);
          for (int64_t m = 0; m < s.out_channels; ++m) {
            const int64_t channel = task % s.groups * s.out_channels + m;
            for (int64_t d = 0; d < s.out[0]; ++d) {
              const float* slice = image + d * s.stride[0] * plan.image.slice;
              const int64_t at = ((task * s.out_channels + m) * s.out[0] + d) * s.out[1] * s.out[2];
              const float bias = epilogue.bias != nullptr ? epilogue.bias[channel] : 0;
              const float* residual =
                  epilogue.residual != nullptr ? epilogue.residual + at : nullptr;
              const Activation& act = epilogue.activation;
              if (rows_kernel.get()({slice, plan.image.columns, plan.image.taps.data(),
                                     packed + channel * taps, taps, adjacent, s.out[1], s.out[2],
                                     bias, residual, act.kind == Activation::Kind::kClamp,
                                     act.alpha, act.beta, y + at})) {
                if (!act.tiled()) apply_activation(act, y + at, s.out[1] * s.out[2]);
                continue;
              }
              kernel(slice, plan.image.taps.data(), packed + channel * taps, taps, flat, sums);
              finish_rows(sums, plan.image.columns, bias, residual, act, s.out[1], s.out[2],
                          y + at);
            }
          }
        }
      });
}

}  // namespace tombolo
#endif
