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
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_SPLIT_TASK
#define TOMBOLO_SPLIT_TASK
namespace tombolo {
namespace {

/// A padded plane by its phases: see split_image().
struct SplitTask {
  const float* x;
  int64_t rows, width, n;      ///< of x; the first n floats of a row are taken
  int64_t height;              ///< padded
  int64_t top, left;           ///< padding
  int64_t stride_y, stride_x;  ///< stride_x is 1 to 4
  int64_t columns, phase;
  uint64_t row_phases, column_phases;  ///< those that a kernel reads, a bit each
  float fill;
  float* out;
};

/// Of an axis whose phases are more than a word has bits, all are read.
inline bool reads_phase(uint64_t phases, int64_t phase) {
  return phase >= 64 || (phases >> phase & 1) != 0;
}

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
  const auto fill = hn::Set(f, t.fill);
  int64_t row_phase = 0;
  float* line = t.out;  // of the first row phase
  for (int64_t row = 0; row < t.height; ++row) {
    const int64_t phase = row_phase;
    float* to = line + phase * t.stride_x * t.phase;
    if (++row_phase == t.stride_y) {
      row_phase = 0;
      line += t.columns;
    }
    if (!reads_phase(t.row_phases, phase)) continue;
    const int64_t from_row = row - t.top;
    if (from_row < 0 || from_row >= t.rows) {
      for (int64_t p = 0; p < t.stride_x; ++p)
        for (int64_t c = 0; reads_phase(t.column_phases, p) && c < t.columns; c += lanes)
          store_n(fill, f, to + p * t.phase + c, t.columns - c);
      continue;
    }
    const float* from = t.x + from_row * t.width;
    if (t.stride_x == 1) {
      const int64_t right = t.left + t.n;
      float* const inside = to + t.left;
      int64_t whole = 0;
      for (; whole + lanes <= t.n; whole += lanes)
        hn::StoreU(hn::LoadU(f, from + whole), f, inside + whole);
      if (whole < t.n)
        store_n(load_n(f, from + whole, t.n - whole), f, inside + whole, t.n - whole);
      for (int64_t i = 0; i < t.left; i += lanes) store_n(fill, f, to + i, t.left - i);
      for (int64_t i = right; i < t.columns; i += lanes) store_n(fill, f, to + i, t.columns - i);
      continue;
    }
    for (int64_t c = 0; c < t.columns; c += lanes) {
      const auto put = [&](int64_t p, hn::Vec<F> v) HWY_ATTR __attribute__((always_inline)) {
        if (reads_phase(t.column_phases, p)) store_n(v, f, to + p * t.phase + c, t.columns - c);
      };
      const int64_t at = t.stride_x * c - t.left;
      const auto v0 = load_within(f, from, at, t.n, fill),
                 v1 = load_within(f, from, at + lanes, t.n, fill);
      if (t.stride_x == 2) {
        put(0, hn::ConcatEven(f, v1, v0));
        put(1, hn::ConcatOdd(f, v1, v0));
        continue;
      }
      const auto v2 = load_within(f, from, at + 2 * lanes, t.n, fill);
      if (t.stride_x == 3) {
        HWY_ALIGN float three[3 * HWY_LANES(float)];
        hn::Store(v0, f, three);
        hn::Store(v1, f, three + lanes);
        hn::Store(v2, f, three + 2 * lanes);
        hn::Vec<F> a, b, d;
        hn::LoadInterleaved3(f, three, a, b, d);
        put(0, a);
        put(1, b);
        put(2, d);
        continue;
      }
      const auto v3 = load_within(f, from, at + 3 * lanes, t.n, fill);
      const auto even0 = hn::ConcatEven(f, v1, v0), even1 = hn::ConcatEven(f, v3, v2);
      const auto odd0 = hn::ConcatOdd(f, v1, v0), odd1 = hn::ConcatOdd(f, v3, v2);
      put(0, hn::ConcatEven(f, even1, even0));
      put(1, hn::ConcatEven(f, odd1, odd0));
      put(2, hn::ConcatOdd(f, even1, even0));
      put(3, hn::ConcatOdd(f, odd1, odd0));
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
  // A short kernel, or a spread one, does not read all phases.
  const auto phases = [&](int axis) {
    uint64_t read = 0;
    for (int64_t k = 0; k < s.kernel[axis]; ++k) {
      const int64_t phase = k * s.dilation[axis] % s.stride[axis];
      if (phase < 64) read |= uint64_t{1} << phase;
    }
    return read;
  };
  const uint64_t slice_phases = phases(0), row_phases = phases(1), column_phases = phases(2);
  const bool vectors = sx <= 4 && last > first;
  const bool all = sx < 64 && column_phases == (uint64_t{1} << sx) - 1;
  for (int64_t d = 0; d < depth; ++d) {
    if (!reads_phase(slice_phases, d % s.stride[0])) continue;
    const int64_t from_d = d - s.pad[0];
    const bool inside_d = from_d >= 0 && from_d < s.in[0];
    float* slice = out + d * image.slice;
    if (vectors && inside_d) {
      TOMBOLO_TARGET(void(const SplitTask&), split_plane)
          .get()({x + from_d * s.in[1] * s.in[2], s.in[1], s.in[2], last - first, height, s.pad[1],
                  first, sy, sx, image.columns, image.phase, row_phases, column_phases, fill,
                  slice});
      continue;
    }
    for (int64_t row = 0; row < height; ++row) {
      if (!reads_phase(row_phases, row % sy)) continue;
      float* to = slice + row % sy * sx * image.phase + row / sy * image.columns;
      const int64_t from_row = row - s.pad[1];
      const bool inside = inside_d && from_row >= 0 && from_row < s.in[1];
      const float* from = x + (from_d * s.in[1] + from_row) * s.in[2] - s.pad[2];
      // Places of which the row has all phases, and those around them.
      const int64_t begin = inside ? std::min((first + sx - 1) / sx, image.columns) : image.columns;
      const int64_t end = std::max(begin, std::min(last / sx, image.columns));
      if (all && end > begin)
        transpose_tile(reinterpret_cast<const std::byte*>(from + begin * sx), sx,
                       reinterpret_cast<std::byte*>(to + begin), image.phase, end - begin, sx,
                       sizeof(float));
      for (int64_t p = 0; p < sx; ++p) {
        if (!reads_phase(column_phases, p)) continue;
        float* const line = to + p * image.phase;
        const auto edge = [&](int64_t c) {
          const int64_t at = c * sx + p;
          line[c] = inside && at >= first && at < last ? from[at] : fill;
        };
        for (int64_t c = 0; c < begin; ++c) edge(c);
        for (int64_t c = begin; !all && c < end; ++c) line[c] = from[c * sx + p];
        for (int64_t c = end; c < image.columns; ++c) edge(c);
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
