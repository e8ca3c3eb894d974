#pragma once

#include <cstdint>

#include "base/result.h"
#include "runtime/plan.h"

namespace tombolo {

/// What a run would hold at its peak, by shape inference from the shapes of these inputs, checked
/// before anything is allocated: a resource error names the node that goes beyond `limit` bytes.
/// Sizes that depend on data count as nothing here (KernelHost::reserve meets them). Changes the
/// types of the graph's inputs while it works: one call at a time.
Status check_planned_sizes(const Model& model, const GraphPlan& plan,
                           const std::vector<RunValue>& inputs, uint64_t limit);

}  // namespace tombolo
