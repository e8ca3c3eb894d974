#pragma once

// Conversion between element types as Cast has it; docs/numerics.md says what it leaves open.

#include "base/float_formats.h"
#include "ir/tensor.h"
#include "ops/kernel_context.h"

namespace tombolo::ops {

/// `in` with elements of type `to`; shares the buffer when it is that already. Errors: complex
/// numbers, a string that is not a number.
Result<Tensor> cast_tensor(const KernelContext& context, const Tensor& in, DType to,
                           CastOptions options = {});

/// The node's attributes `saturate` and `round_mode`.
Result<CastOptions> cast_options(const KernelContext& context);

}  // namespace tombolo::ops
