#pragma once

// Inference functions that many operators share. Light on purpose: an operator file that needs no
// more includes this alone. Element types that a function leaves open come from the schema.

#include "ops/schema.h"

namespace tombolo::ops {

/// Output 0 has the shape of input 0.
Status infer_unary(InferContext& context);
/// Output 0 has the type, shape and elements of input 0.
Status infer_identity(InferContext& context);
/// Output 0 has the broadcast shape of all inputs. Before opset 7, and with `broadcast`, that of A.
Status infer_broadcast(InferContext& context);
/// Convolution-like windows with the kernel from `kernel_shape` alone: pooling. Outputs 0 and 1.
Status infer_pool(InferContext& context);
/// Spatial axes become 1.
Status infer_global_pool(InferContext& context);
/// `axes` (attribute or input 1), `keepdims`, `noop_with_empty_axes`.
Status infer_reduce(InferContext& context);
/// X, W, R -> Y, Y_h, Y_c with `direction`, `layout`, `hidden_size`.
Status infer_recurrent(InferContext& context);
/// As a convolution: X at input 0, W at `weight_input`.
Status infer_convolution(InferContext& context, size_t weight_input);
/// Numpy's matmul of two inputs.
Status infer_matmul(InferContext& context, size_t a, size_t b);
/// [N, ...] -> [N, columns]: ML operators that map rows. Unknown columns below 0.
Status infer_rows(InferContext& context, size_t output, int64_t columns);
/// `dtype` attribute (or `fallback`, or input 0's type when that is kUndefined), `shape` attribute.
Status infer_random(InferContext& context);
/// `dtype` attribute, else the type of input 0; shape of input 0.
Status infer_random_like(InferContext& context);

}  // namespace tombolo::ops
