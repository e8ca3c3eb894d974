#pragma once

// Convolution by gathering blocks of windows into a matrix and multiplying: shared by Conv,
// ConvInteger and QLinearConv.

#include <cstdint>

#include "ops/kernels/window.h"

namespace tombolo::ops {

struct ConvShape {
  Window window;
  int64_t batch, channels, out_channels, groups;
  Dims output;  ///< [batch, out_channels, spatial...]

  int64_t group_channels() const { return channels / groups; }
  int64_t group_outputs() const { return out_channels / groups; }
};

/// Checks x [N, C, spatial...] against w [M, C / group, kernel...] and reads the attributes.
Result<ConvShape> read_conv(const KernelContext& context, const Tensor& x, const Tensor& w);

/// y = conv(x, w) + bias, bias [M] or null. T: float, double, uint32_t.
template <typename T>
Status convolve(const KernelContext& context, const ConvShape& shape, const T* x, const T* w,
                const T* bias, T* y);

extern template Status convolve(const KernelContext&, const ConvShape&, const float*, const float*,
                                const float*, float*);
extern template Status convolve(const KernelContext&, const ConvShape&, const double*,
                                const double*, const double*, double*);
extern template Status convolve(const KernelContext&, const ConvShape&, const uint32_t*,
                                const uint32_t*, const uint32_t*, uint32_t*);

}  // namespace tombolo::ops
