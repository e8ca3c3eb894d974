#pragma once

#include <cstdint>

#include "base/result.h"
#include "runtime/inferred_shapes.h"
#include "runtime/plan.h"

namespace tombolo {

/// What a run with inputs of these shapes would hold at its peak, checked before anything is
/// allocated: a resource error names the node that goes beyond `limit` bytes. Sizes that depend on
/// data count as nothing here (KernelHost::reserve meets them).
Status check_planned_sizes(const InferredShapes& shapes, const GraphPlan& plan, uint64_t limit);

}  // namespace tombolo
