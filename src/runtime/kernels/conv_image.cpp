#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv_image.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/conv.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;

/// n groups of `stride` floats of x go to out[phase * step + i].
void split_row(const float* HWY_RESTRICT x, int64_t n, int64_t stride, float* HWY_RESTRICT out,
               int64_t step) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  int64_t i = 0;
  if (stride == 2) {
    for (; i + lanes <= n; i += lanes) {
      hn::Vec<F> a, b;
      hn::LoadInterleaved2(f, x + 2 * i, a, b);
      hn::StoreU(a, f, out + i);
      hn::StoreU(b, f, out + step + i);
    }
  } else if (stride == 4) {
    for (; i + lanes <= n; i += lanes) {
      hn::Vec<F> a, b, c, d;
      hn::LoadInterleaved4(f, x + 4 * i, a, b, c, d);
      hn::StoreU(a, f, out + i);
      hn::StoreU(b, f, out + step + i);
      hn::StoreU(c, f, out + 2 * step + i);
      hn::StoreU(d, f, out + 3 * step + i);
    }
  }
  for (; i < n; ++i)
    for (int64_t p = 0; p < stride; ++p) out[p * step + i] = x[i * stride + p];
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
  for (int64_t k = from; k < to; ++k, out += width) {
    const float* base = image + offsets[k];
    for (int64_t r = 0; r < run_count; ++r) {
      const float* src = base + runs[r].from;
      float* dst = out + runs[r].to;
      int64_t left = runs[r].count;
      for (; left >= lanes; left -= lanes, src += lanes, dst += lanes)
        hn::StoreU(hn::LoadU(f, src), f, dst);
      if (left > 0) hn::StoreU(load_n(f, src, left), f, dst);
    }
  }
}

void finish(const float* HWY_RESTRICT x, float bias, const float* residual, bool clamp, float lo,
            float hi, int64_t n, float* y) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto b = hn::Set(f, bias), l = hn::Set(f, lo), h = hn::Set(f, hi);
  for (int64_t i = 0; i < n; i += lanes) {
    auto v = hn::Add(load_n(f, x + i, n - i), b);
    if (residual != nullptr) v = hn::Add(v, load_n(f, residual + i, n - i));
    if (clamp) v = hn::Min(h, hn::Max(l, v));
    store_n(v, f, y + i, n - i);
  }
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
  const auto& split =
      TOMBOLO_TARGET(void(const float*, int64_t, int64_t, float*, int64_t), split_row);
  const int64_t depth = image.plane / std::max<int64_t>(image.slice, 1);
  const int64_t sy = s.stride[1], sx = s.stride[2];
  const int64_t width = image.columns * sx, height = image.rows * sy;
  // What of a row is inside: columns [first, last) of the padded row.
  const int64_t first = std::min(s.pad[2], width), last = std::min(s.pad[2] + s.in[2], width);
  const bool margin = first > 0 || last < width;
  // With one kernel position an axis, other phases are never read.
  const bool only_y = s.kernel[1] == 1, only_x = s.kernel[2] == 1 && sx > 1;
  for (int64_t d = 0; d < depth; ++d) {
    const int64_t from_d = d - s.pad[0];
    for (int64_t row = 0; row < height; ++row) {
      if (only_y && row % sy != 0) continue;
      float* to = out + d * image.slice + row % sy * sx * image.phase + row / sy * image.columns;
      const int64_t from_row = row - s.pad[1];
      const bool inside = from_d >= 0 && from_d < s.in[0] && from_row >= 0 && from_row < s.in[1];
      if (!inside || last <= first) {
        for (int64_t p = 0; p < sx; ++p) std::fill_n(to + p * image.phase, image.columns, fill);
        continue;
      }
      const float* from = x + (from_d * s.in[1] + from_row) * s.in[2];
      if (sx == 1) {
        std::fill_n(to, first, fill);
        std::memcpy(to + first, from, static_cast<size_t>(last - first) * sizeof(float));
        std::fill_n(to + last, width - last, fill);
        continue;
      }
      if (only_x) {
        for (int64_t c = 0; c < image.columns; ++c) {
          const int64_t at = c * sx - s.pad[2];
          to[c] = at >= 0 && at < s.in[2] ? from[at] : fill;
        }
        continue;
      }
      if (margin)
        for (int64_t p = 0; p < sx; ++p) {
          std::fill_n(to + p * image.phase, std::min(image.columns, (first + sx - 1) / sx), fill);
          const int64_t end = last / sx;
          std::fill_n(to + p * image.phase + end, image.columns - end, fill);
        }
      int64_t c = first;
      for (; c < last && c % sx != 0; ++c) to[c % sx * image.phase + c / sx] = from[c - s.pad[2]];
      const int64_t groups = (last - c) / sx;
      split(from + c - s.pad[2], groups, sx, to + c / sx, image.phase);
      for (c += groups * sx; c < last; ++c) to[c % sx * image.phase + c / sx] = from[c - s.pad[2]];
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
