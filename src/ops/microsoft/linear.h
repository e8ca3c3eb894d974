#pragma once

// Tensors of 8-bit integers with one scale and zero point: to numbers and back.

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// The scalar at input `index` (a scale), which must be there.
Result<float> scalar_scale(const KernelContext& context, size_t index, const char* name);
/// The zero point at input `index`, 0 when absent; it must have the type `type`.
Result<int64_t> scalar_zero_point(const KernelContext& context, size_t index, const char* name,
                                  DType type);

/// scale * (x - zero point) of input `index`, whose scale and zero point follow it.
Result<Tensor> read_linear(const KernelContext& context, size_t index);
/// The same, where they lie elsewhere.
Result<Tensor> read_linear(const KernelContext& context, size_t index, size_t scale, size_t zero);

/// Rounds `values` (float) with the scale and zero point at these inputs into output 0.
Status give_linear(KernelContext& context, const Tensor& values, size_t scale, size_t zero,
                   DType type);

}  // namespace tombolo::ops
