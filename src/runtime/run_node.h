#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "ir/model.h"
#include "ir/run_value.h"

namespace tombolo {

/// Runs a node that stands in a model with `opset` of its domain, with the best kernels, on inputs
/// (null where absent). Outputs stand where the node has them. It has no bodies.
Result<std::vector<RunValue>> run_node(const Node& node, int64_t opset,
                                       std::span<const RunValue* const> inputs);

}  // namespace tombolo
