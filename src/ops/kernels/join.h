#pragma once

// Putting tensors together and taking slices out, for Concat, sequences, Loop and Scan.

#include <span>
#include <vector>

#include "ops/kernel_context.h"

namespace tombolo::ops {

/// The tensors one after another along `axis`. At least one; equal types and other dims.
Result<Tensor> concatenate(const KernelContext& context, std::span<const Tensor* const> inputs,
                           int64_t axis);

/// The tensors side by side along a new axis, of equal type and shape, in order or `reversed`.
/// At least one.
Result<Tensor> stack(const KernelContext& context, std::span<const Tensor> inputs, int64_t axis,
                     bool reversed = false);

/// Elements [begin, begin + length) along `axis`, which is in range.
Result<Tensor> slice_along(const KernelContext& context, const Tensor& tensor, size_t axis,
                           int64_t begin, int64_t length);

/// Element `index` along `axis`, without that axis. Both are in range.
Result<Tensor> element_along(const KernelContext& context, const Tensor& tensor, size_t axis,
                             int64_t index);

}  // namespace tombolo::ops
