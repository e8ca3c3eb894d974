#include "ops/kernels/conv.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"

namespace tombolo::ops {

Result<ConvShape> read_conv(const KernelContext& context, const Tensor& x, const Tensor& w) {
  if (x.rank() < 3 || w.rank() != x.rank())
    return context.error("X and W must have the same rank of at least 3, are " + to_string(x) +
                         " and " + to_string(w));
  ConvShape shape;
  shape.groups = context.attributes.get_int("group", 1);
  shape.batch = x.dim(0);
  shape.channels = x.dim(1);
  shape.out_channels = w.dim(0);
  if (shape.groups < 1 || shape.channels % shape.groups != 0 ||
      shape.out_channels % shape.groups != 0)
    return context.error("group is " + std::to_string(shape.groups) + ", but X has " +
                         std::to_string(shape.channels) + " channels and W makes " +
                         std::to_string(shape.out_channels));
  if (w.dim(1) != shape.channels / shape.groups)
    return context.error("W takes " + std::to_string(w.dim(1)) + " channels, X has " +
                         std::to_string(shape.channels) + " in " + std::to_string(shape.groups) +
                         " groups");
  TRY(shape.window,
      read_sliding_window(context, x.dims().span().subspan(2), w.dims().span().subspan(2), false));
  shape.output = {shape.batch, shape.out_channels};
  for (int64_t dim : shape.window.output) shape.output.push_back(dim);
  return shape;
}

namespace {

/// Rows of `columns`: one for each (channel, kernel position); columns: windows [begin, end) of the
/// output. x is one group of one image.
template <typename T>
void gather_windows(const Window& window, int64_t channels, const T* x, int64_t begin, int64_t end,
                    T* columns) {
  const size_t rank = window.rank(), inner = rank - 1;
  const int64_t count = end - begin, line = window.output[inner];
  const int64_t stride = window.strides[inner], width = window.input[inner];
  const int64_t plane = window.input_size();
  BoxIndex at(window.output);
  for (int64_t channel = 0; channel < channels; ++channel, x += plane) {
    BoxIndex kernel(window.kernel);
    for (int64_t k = window.kernel_size(); k > 0; --k, kernel.next(), columns += count) {
      for (int64_t window_index = begin; window_index < end;) {
        at.seek(window_index);
        const int64_t run = std::min(line - at[inner], end - window_index);
        T* to = columns + (window_index - begin);
        window_index += run;
        int64_t row = 0;
        bool inside = true;
        for (size_t axis = 0; axis < inner; ++axis) {
          const int64_t position = at[axis] * window.strides[axis] - window.pads_begin[axis] +
                                   kernel[axis] * window.dilations[axis];
          inside = inside && position >= 0 && position < window.input[axis];
          row = row * window.input[axis] + position;
        }
        if (!inside) {
          std::fill_n(to, run, T{});
          continue;
        }
        int64_t position =
            at[inner] * stride - window.pads_begin[inner] + kernel[inner] * window.dilations[inner];
        int64_t i = 0;
        for (; i < run && position < 0; ++i, position += stride) to[i] = T{};
        const T* from = x + row * width;
        if (stride == 1) {
          const int64_t copy = std::clamp<int64_t>(width - position, 0, run - i);
          if (copy > 0) std::memcpy(to + i, from + position, static_cast<size_t>(copy) * sizeof(T));
          i += copy;
        } else {
          for (; i < run && position < width; ++i, position += stride) to[i] = from[position];
        }
        for (; i < run; ++i) to[i] = T{};
      }
    }
  }
}

/// Whether the matrix of windows is the input itself.
bool is_pointwise(const Window& window) {
  for (size_t axis = 0; axis < window.rank(); ++axis)
    if (window.kernel[axis] != 1 || window.strides[axis] != 1 || window.pads_begin[axis] != 0 ||
        window.pads_end[axis] != 0)
      return false;
  return true;
}

}  // namespace

template <typename T>
Status convolve(const KernelContext& context, const ConvShape& shape, const T* x, const T* w,
                const T* bias, T* y) {
  const Window& window = shape.window;
  const int64_t depth = shape.group_channels() * window.kernel_size();
  const int64_t outputs = shape.group_outputs(), pixels = window.output_size();
  const int64_t in_plane = shape.group_channels() * window.input_size();
  const int64_t images = shape.batch * shape.groups;
  if (images == 0 || outputs == 0 || pixels == 0) return ok();
  const bool pointwise = is_pointwise(window);
  // About 2 MB of windows at a time, in at least a few parts so that threads have work.
  const int64_t cached = 524288 / std::max<int64_t>(depth, 1) / 8 * 8;
  const int64_t fair = (pixels / std::max<int64_t>(1, 8 / images) + 15) / 8 * 8;
  const int64_t block = std::clamp<int64_t>(std::min(cached, fair), 16, 4096);
  const int64_t blocks = (pixels + block - 1) / block;
  std::atomic<bool> failed = false;
  context.parallel_for(images * blocks, 1, [&](int64_t first, int64_t last) {
    Tensor scratch;
    if (!pointwise) {
      const int64_t size[] = {depth, std::min(block, pixels)};
      auto allocated = context.allocate(dtype_of<T>(), size);
      if (!allocated) {
        failed = true;
        return;
      }
      scratch = *std::move(allocated);
    }
    for (int64_t task = first; task < last; ++task) {
      const int64_t image = task / blocks, group = image % shape.groups;
      const int64_t begin = task % blocks * block, end = std::min(begin + block, pixels);
      const T* from = x + image * in_plane;
      T* to = y + image * outputs * pixels + begin;
      if (bias != nullptr)
        for (int64_t m = 0; m < outputs; ++m)
          std::fill_n(to + m * pixels, end - begin, bias[group * outputs + m]);
      MatrixView<T> columns{from + begin, pixels, 1};
      if (!pointwise) {
        gather_windows(window, shape.group_channels(), from, begin, end, scratch.data<T>());
        columns = {scratch.data<T>(), end - begin, 1};
      }
      gemm<T>(outputs, end - begin, depth, {w + group * outputs * depth, depth, 1}, columns, to,
              pixels, bias != nullptr);
    }
  });
  if (failed)
    return resource_error("no memory for the windows of a convolution: " + std::to_string(depth) +
                          " by " + std::to_string(std::min(block, pixels)) + " elements a thread");
  return ok();
}

template Status convolve(const KernelContext&, const ConvShape&, const float*, const float*,
                         const float*, float*);
template Status convolve(const KernelContext&, const ConvShape&, const double*, const double*,
                         const double*, double*);
template Status convolve(const KernelContext&, const ConvShape&, const uint32_t*, const uint32_t*,
                         const uint32_t*, uint32_t*);

}  // namespace tombolo::ops
