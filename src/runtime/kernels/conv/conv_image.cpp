#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/conv_image.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_SPLIT_TASK
#define TOMBOLO_SPLIT_TASK
namespace tombolo {
namespace {

/// A padded plane by its phases: see split_image(). `room` takes a padded row and some vectors
/// more.
struct SplitTask {
  const float* x;
  int64_t rows, n;             ///< of x; n floats of a row are taken
  int64_t height;              ///< padded
  int64_t top, left;           ///< padding
  int64_t stride_y, stride_x;  ///< stride_x is 1, 2 or 4
  int64_t columns, phase;
  bool first_row_phase_only;
  float fill;
  float* room;
  float* out;
};

}  // namespace
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;

void split_plane(const SplitTask& task) {
  const F f;
  const SplitTask t = task;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t width = t.columns * t.stride_x, right = t.left + t.n;
  const auto fill = hn::Set(f, t.fill);
  if (t.stride_x > 1)
    for (int64_t i = 0; i < width; i += lanes) store_n(fill, f, t.room + i, width - i);
  int64_t row_phase = 0;
  float* line = t.out;  // of the first row phase
  for (int64_t row = 0; row < t.height; ++row) {
    const int64_t phase = row_phase;
    float* to = line + phase * t.stride_x * t.phase;
    if (++row_phase == t.stride_y) {
      row_phase = 0;
      line += t.columns;
    }
    if (t.first_row_phase_only && phase != 0) continue;
    const int64_t from_row = row - t.top;
    if (from_row < 0 || from_row >= t.rows) {
      for (int64_t p = 0; p < t.stride_x; ++p)
        for (int64_t c = 0; c < t.columns; c += lanes)
          store_n(fill, f, to + p * t.phase + c, t.columns - c);
      continue;
    }
    const float* from = t.x + from_row * t.n;
    float* inside = (t.stride_x == 1 ? to : t.room) + t.left;
    int64_t whole = 0;
    for (; whole + lanes <= t.n; whole += lanes)
      hn::StoreU(hn::LoadU(f, from + whole), f, inside + whole);
    if (whole < t.n) store_n(load_n(f, from + whole, t.n - whole), f, inside + whole, t.n - whole);
    if (t.stride_x == 1) {
      for (int64_t i = 0; i < t.left; i += lanes) store_n(fill, f, to + i, t.left - i);
      for (int64_t i = right; i < width; i += lanes) store_n(fill, f, to + i, width - i);
      continue;
    }
    for (int64_t c = 0; c < t.columns; c += lanes) {
      const int64_t left = t.columns - c;
      if (t.stride_x == 2) {
        hn::Vec<F> a, b;
        hn::LoadInterleaved2(f, t.room + 2 * c, a, b);
        store_n(a, f, to + c, left);
        store_n(b, f, to + t.phase + c, left);
      } else {
        hn::Vec<F> a, b, d, e;
        hn::LoadInterleaved4(f, t.room + 4 * c, a, b, d, e);
        store_n(a, f, to + c, left);
        store_n(b, f, to + t.phase + c, left);
        store_n(d, f, to + 2 * t.phase + c, left);
        store_n(e, f, to + 3 * t.phase + c, left);
      }
    }
  }
}

void gather(const float* HWY_RESTRICT image, const int64_t* HWY_RESTRICT offsets, int64_t from,
            int64_t to, const PixelRun* HWY_RESTRICT runs, int64_t run_count, int64_t width,
            float* HWY_RESTRICT out) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  if (run_count == 1 && runs[0].to == 0 && runs[0].count == 2 * lanes) {
    for (int64_t k = from; k < to; ++k, out += width) {
      const float* src = image + offsets[k] + runs[0].from;
      hn::StoreU(hn::LoadU(f, src), f, out);
      hn::StoreU(hn::LoadU(f, src + lanes), f, out + lanes);
    }
    return;
  }
  // One run after the other down all rows: what is done for a run is the same in each.
  for (int64_t r = 0; r < run_count; ++r) {
    const float* base = image + runs[r].from;
    const int64_t whole = runs[r].count / lanes * lanes, rest = runs[r].count - whole;
    float* dst = out + runs[r].to;
    if (whole == 0) {
      for (int64_t k = from; k < to; ++k, dst += width)
        store_n(load_n(f, base + offsets[k], rest), f, dst, rest);
    } else if (whole == lanes) {
      if (rest == 0)
        for (int64_t k = from; k < to; ++k, dst += width)
          hn::StoreU(hn::LoadU(f, base + offsets[k]), f, dst);
      else
        for (int64_t k = from; k < to; ++k, dst += width) {
          const float* src = base + offsets[k];
          hn::StoreU(hn::LoadU(f, src), f, dst);
          store_n(load_n(f, src + lanes, rest), f, dst + lanes, rest);
        }
    } else {
      for (int64_t k = from; k < to; ++k, dst += width) {
        const float* src = base + offsets[k];
        for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::LoadU(f, src + i), f, dst + i);
        if (rest > 0) store_n(load_n(f, src + whole, rest), f, dst + whole, rest);
      }
    }
  }
}

void finish(const float* x, float bias, const float* residual, bool clamp, float lo, float hi,
            int64_t n, float* y) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto b = hn::Set(f, bias), l = hn::Set(f, lo), h = hn::Set(f, hi);
  for (int64_t i = 0; i < n; i += lanes) {
    auto v = hn::Add(load_n(f, x + i, n - i), b);
    if (residual != nullptr) v = hn::Add(v, load_n(f, residual + i, n - i));
    if (clamp) v = min_of(h, max_of(l, v));
    store_n(v, f, y + i, n - i);
  }
}

/// finish() for `rows` rows, x_step and y_step apart.
void finish_many(const float* x, int64_t x_step, float bias, const float* residual, bool clamp,
                 float lo, float hi, int64_t rows, int64_t n, float* y) {
  for (int64_t r = 0; r < rows; ++r)
    finish(x + r * x_step, bias, residual != nullptr ? residual + r * n : nullptr, clamp, lo, hi, n,
           y + r * n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

ConvImage plan_image(const ConvGeometry& s) {
  ConvImage image;
  image.copy = false;
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t needed = (s.out[axis] - 1) * s.stride[axis] + s.extent(axis);
    if (s.pad[axis] != 0 || needed > s.in[axis] || (axis > 0 && s.stride[axis] != 1))
      image.copy = true;
  }
  const auto span = [&](int axis) { return (s.out[axis] - 1) * s.stride[axis] + s.extent(axis); };
  const int64_t depth = image.copy ? span(0) : s.in[0];
  image.rows = image.copy ? (span(1) + s.stride[1] - 1) / s.stride[1] : s.in[1];
  image.columns = image.copy ? (span(2) + s.stride[2] - 1) / s.stride[2] : s.in[2];
  image.phase = image.rows * image.columns;
  image.slice = image.phase * s.stride[1] * s.stride[2];
  if (!image.copy) image.slice = image.phase;
  image.plane = depth * image.slice;
  for (int64_t d = 0; d < s.kernel[0]; ++d)
    for (int64_t r = 0; r < s.kernel[1]; ++r)
      for (int64_t c = 0; c < s.kernel[2]; ++c) {
        const int64_t y = r * s.dilation[1], x = c * s.dilation[2];
        image.taps.push_back(d * s.dilation[0] * image.slice +
                             (y % s.stride[1] * s.stride[2] + x % s.stride[2]) * image.phase +
                             y / s.stride[1] * image.columns + x / s.stride[2]);
      }
  return image;
}

void split_image(const ConvGeometry& s, const ConvImage& image, const float* x, float fill,
                 float* out) {
  const int64_t depth = image.plane / std::max<int64_t>(image.slice, 1);
  const int64_t sy = s.stride[1], sx = s.stride[2];
  const int64_t width = image.columns * sx, height = image.rows * sy;
  // What of a row is inside: columns [first, last) of the padded row.
  const int64_t first = std::min(s.pad[2], width), last = std::min(s.pad[2] + s.in[2], width);
  // With one kernel position an axis, other phases are never read.
  const bool only_y = s.kernel[1] == 1, only_x = s.kernel[2] == 1 && sx > 1;
  const bool vectors = (sx == 1 || sx == 2 || sx == 4) && !only_x && last > first;
  for (int64_t d = 0; d < depth; ++d) {
    const int64_t from_d = d - s.pad[0];
    const bool inside_d = from_d >= 0 && from_d < s.in[0];
    float* slice = out + d * image.slice;
    if (vectors && inside_d && last - first == s.in[2]) {
      TOMBOLO_TARGET(void(const SplitTask&), split_plane)
          .get()({x + from_d * s.in[1] * s.in[2], s.in[1], s.in[2], height, s.pad[1], first, sy, sx,
                  image.columns, image.phase, only_y, fill,
                  sx == 1 ? nullptr : thread_floats(0, static_cast<size_t>(width) + 128), slice});
      continue;
    }
    for (int64_t row = 0; row < height; ++row) {
      if (only_y && row % sy != 0) continue;
      float* to = slice + row % sy * sx * image.phase + row / sy * image.columns;
      const int64_t from_row = row - s.pad[1];
      const bool inside = inside_d && from_row >= 0 && from_row < s.in[1];
      const float* from = x + (from_d * s.in[1] + from_row) * s.in[2] - s.pad[2];
      for (int64_t p = 0; p < (only_x ? 1 : sx); ++p)
        for (int64_t c = 0; c < image.columns; ++c) {
          const int64_t at = c * sx + p;
          to[p * image.phase + c] = inside && at >= first && at < last ? from[at] : fill;
        }
    }
  }
}

void gather_pixels(const float* image, const int64_t* offsets, int64_t from, int64_t to,
                   const PixelRun* runs, int64_t run_count, int64_t width, float* out) {
  TOMBOLO_TARGET(void(const float*, const int64_t*, int64_t, int64_t, const PixelRun*, int64_t,
                      int64_t, float*),
                 gather)
  (image, offsets, from, to, runs, run_count, width, out);
}

void finish_rows(const float* x, int64_t x_step, float bias, const float* residual,
                 const Activation& activation, int64_t rows, int64_t n, float* y) {
  const bool clamp = activation.kind == Activation::Kind::kClamp;
  using Fn = void(const float*, int64_t, float, const float*, bool, float, float, int64_t, int64_t,
                  float*);
  TOMBOLO_TARGET(Fn, finish_many)
  (x, x_step, bias, residual, clamp, activation.alpha, activation.beta, rows, n, y);
  if (!activation.tiled()) apply_activation(activation, y, rows * n);
}

void finish_row(const float* x, float bias, const float* residual, const Activation& activation,
                int64_t n, float* y) {
  const bool clamp = activation.kind == Activation::Kind::kClamp;
  TOMBOLO_TARGET(void(const float*, float, const float*, bool, float, float, int64_t, float*),
                 finish)
  (x, bias, residual, clamp, activation.alpha, activation.beta, n, y);
  if (!activation.tiled()) apply_activation(activation, y, n);
}

}  // namespace tombolo
#endif
