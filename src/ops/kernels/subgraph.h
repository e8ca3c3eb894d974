#pragma once

// What the operators with a body share.

#include <vector>

#include "ops/kernel_context.h"

namespace tombolo::ops {

/// The subgraph in attribute `name`, which must have `inputs` inputs (-1: any number).
Result<const Graph*> body_graph(const KernelContext& context, const char* name, int64_t inputs);

/// Runs it and checks that it gives `outputs` outputs.
Result<std::vector<RunValue>> run_body(const KernelContext& context, const Graph& graph,
                                       std::vector<RunValue> inputs, size_t outputs);

/// A tensor among a body's results.
Result<Tensor> tensor_of(const KernelContext& context, const RunValue& value, const char* what);

/// One bool out of a tensor.
Result<bool> bool_of(const KernelContext& context, const RunValue& value, const char* what);

/// A tensor of no elements, of the type and shape that the body declares for its output `index`,
/// with a new axis of length 0 inserted; unknown dims are 0.
Result<Tensor> empty_scan_output(const KernelContext& context, const Graph& graph, size_t index,
                                 int64_t axis);

/// True when the same inputs always give the same outputs: no random node at any depth, no call
/// that would have to be looked into.
bool is_deterministic(const Graph& graph);

/// The declared element type of a body's output.
Result<DType> output_type(const KernelContext& context, const Graph& graph, size_t index);

}  // namespace tombolo::ops
