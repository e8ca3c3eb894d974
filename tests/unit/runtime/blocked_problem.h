#pragma once

// Convolutions over blocked channels (kernels/conv/block.h) for tests of their kernels.

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "runtime/kernels/conv/block.h"

namespace tombolo {

struct Freed {
  void operator()(std::byte* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<std::byte, Freed>;
/// Memory with something else in it each time.
inline Bytes bytes(size_t count) {
  static std::mt19937 engine{5};
  count = (count + 127) / 64 * 64;
  Bytes made(static_cast<std::byte*>(std::aligned_alloc(64, count)));
  std::generate_n(made.get(), count, [] { return static_cast<std::byte>(engine()); });
  return made;
}

struct BlockedCase {
  int64_t batch, in_channels, out_channels, height, width, kernel_y, kernel_x;
  int64_t stride = 1, dilation = 1, pad = 0, groups = 1;
};

inline ConvGeometry shape_of(const BlockedCase& c) {
  ConvGeometry s;
  s.batch = c.batch;
  s.groups = c.groups;
  s.in_channels = c.in_channels;
  s.out_channels = c.out_channels;
  const int64_t in[] = {c.height, c.width}, kernel[] = {c.kernel_y, c.kernel_x};
  for (int axis = 1; axis < 3; ++axis) {
    s.in[axis] = in[axis - 1];
    s.kernel[axis] = kernel[axis - 1];
    s.stride[axis] = c.stride;
    s.dilation[axis] = c.dilation;
    s.pad[axis] = c.pad;
    s.out[axis] = (s.in[axis] + 2 * c.pad - s.extent(axis)) / c.stride + 1;
  }
  return s;
}

struct BlockedProblem {
  ConvGeometry s;
  std::vector<float> x, w, bias, residual;
  Activation activation;

  int64_t in_floats() const { return s.groups * blocks_of(s.in_channels) * s.in_plane() * kBlock; }
  int64_t out_floats() const {
    return s.groups * blocks_of(s.out_channels) * s.out_plane() * kBlock;
  }
  ConvEpilogue epilogue() const {
    ConvEpilogue e{.activation = activation};
    if (!bias.empty()) e.bias = bias.data();
    if (!residual.empty()) e.residual = residual.data();
    return e;
  }
  size_t input_at(int64_t n, int64_t c, int64_t pixel) const {
    return static_cast<size_t>(n * in_floats() + (c / kBlock * s.in_plane() + pixel) * kBlock +
                               c % kBlock);
  }
  size_t output_at(int64_t n, int64_t c, int64_t pixel) const {
    return static_cast<size_t>(n * out_floats() + (c / kBlock * s.out_plane() + pixel) * kBlock +
                               c % kBlock);
  }
  /// Lanes beyond the last channel may hold anything.
  void spoil_lanes() {
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t i = 0; i < s.in_plane(); ++i)
        for (int64_t c = s.in_channels; c % kBlock != 0; ++c)
          x[input_at(n, c, i)] = c % 2 == 0 ? std::nanf("") : 1e30f;
  }
  /// The sum of a window's products, in double; one group.
  double sum(int64_t n, int64_t o, int64_t pixel) const {
    double all = 0;
    for (int64_t c = 0; c < s.in_channels; ++c)
      for (int64_t i = 0; i < s.kernel[1]; ++i)
        for (int64_t j = 0; j < s.kernel[2]; ++j) {
          const int64_t row = pixel / s.out[2] * s.stride[1] - s.pad[1] + i * s.dilation[1];
          const int64_t column = pixel % s.out[2] * s.stride[2] - s.pad[2] + j * s.dilation[2];
          if (row < 0 || row >= s.in[1] || column < 0 || column >= s.in[2]) continue;
          const int64_t weight = (o * s.in_channels + c) * s.taps() + i * s.kernel[2] + j;
          all += double{x[input_at(n, c, row * s.in[2] + column)]} * w[static_cast<size_t>(weight)];
        }
    return all;
  }
  /// fn(image, channel, pixel) for each result.
  template <typename Fn>
  void each_result(Fn&& fn) const {
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t c = 0; c < s.groups * s.out_channels; ++c)
        for (int64_t p = 0; p < s.out_plane(); ++p) fn(n, c, p);
  }
  /// fn(index in y) for each result.
  template <typename Fn>
  void each(Fn&& fn) const {
    each_result([&](int64_t n, int64_t c, int64_t p) { fn(output_at(n, c, p)); });
  }
};

}  // namespace tombolo
