#pragma once

// Runs one node on constant inputs with its reference kernel.

#include <span>
#include <vector>

#include "ops/kernel_context.h"
#include "passes/rewriter.h"

namespace tombolo {

/// True when the node always gives the same tensors for the same tensors, and can be run alone: no
/// random operator, no subgraph, a reference kernel.
bool can_evaluate(const Rewriter& rewriter, const Node& node);

/// The outputs of `node`. `inputs`: null where absent. Fails where the kernel does, and when it
/// would hold more than `limit` bytes.
Result<std::vector<RunValue>> evaluate(Rewriter& rewriter, const Node& node,
                                       std::span<const RunValue* const> inputs, uint64_t limit);

namespace passes {

/// An operator that is not (yet) in the graph: `op` of the main domain on these tensors, its first
/// output. For folding two weights into one.
Result<Tensor> compute(Text op, std::span<const Tensor> inputs);
Result<Tensor> compute(Text op, std::initializer_list<Tensor> inputs);

/// A rank-0 (or `dims`) tensor of element type `dtype` filled with `value`.
Result<Tensor> filled(DType dtype, std::span<const int64_t> dims, double value);

/// `tensor` in another element type, by the rules of Cast.
Result<Tensor> cast_to(const Tensor& tensor, DType dtype);
/// Its axes permuted.
Result<Tensor> transposed(const Tensor& tensor, std::span<const int64_t> perm);

}  // namespace passes
}  // namespace tombolo
