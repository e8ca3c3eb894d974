#pragma once

// numpy.matmul on tensors: what MatMul and its integer and quantised relatives share.

#include "ir/tensor.h"
#include "ops/kernel_context.h"

namespace tombolo::ops {

/// The product of the last two axes, the others broadcast; a vector stands for a matrix of one row
/// (left) or one column (right). Both tensors are of one type: float, double, or a 32- or 64-bit
/// integer (which wraps).
Result<Tensor> matrix_product(const KernelContext& context, const Tensor& a, const Tensor& b);

}  // namespace tombolo::ops
