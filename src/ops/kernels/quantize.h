#pragma once

// Scales and zero points: which of them an element belongs to, and rounding into quantised types.

#include <cstdint>

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// Per tensor, per index of an axis, or per block along an axis. An element is at (outer, axis,
/// inner); the strides say how the scales are laid out.
struct Granularity {
  int64_t inner = 1;   ///< elements behind the axis
  int64_t length = 1;  ///< of the axis
  int64_t block = 1;   ///< indices of the axis that share a scale
  int64_t outer_stride = 0, block_stride = 0, inner_stride = 0;

  /// Which scale element `i` takes.
  int64_t at(int64_t i) const {
    return i / inner / length * outer_stride + i / inner % length / block * block_stride +
           i % inner * inner_stride;
  }
};

/// Reads axis and block_size for `x` with scales of the shape of `scale`.
Result<Granularity> read_granularity(const KernelContext& context, const Tensor& x,
                                     const Tensor& scale);

/// The least and greatest value of an integer type of at most 32 bits.
struct IntegerRange {
  int64_t least, greatest;
};
IntegerRange range_of(DType type);

/// round(value) + zero point, to nearest even, saturated. NaN counts as 0.
int64_t quantized(double value, int64_t zero_point, IntegerRange range);

/// `tensor` minus its zero points, as int32: `zero_points` is input `index`, one value or one for
/// each index of `axis` (the shape [n], or that of the tensor with all other axes 1). Absent: 0.
Result<Tensor> without_zero_point(const KernelContext& context, const Tensor& tensor, size_t index,
                                  size_t axis);

/// Input `index`, a scale or zero point with one value, or one for each of `count`: checked.
Result<const Tensor*> one_or_each(const KernelContext& context, size_t index, const char* name,
                                  int64_t count);

}  // namespace tombolo::ops
