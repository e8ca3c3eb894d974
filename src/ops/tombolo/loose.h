#pragma once

// How operators of ai.tombolo are run: as the operators of the standard that they stand for.

#include "ops/kernel_context.h"

namespace tombolo::ops {

/// One node that no model holds.
struct Loose {
  Loose(Text op, size_t inputs);
  Graph graph;
  Node& node;
};

/// Output 0 of the reference kernel of `node` on these inputs.
Result<RunValue> run_as(KernelContext& context, const Node& node,
                        std::span<const RunValue* const> inputs);

}  // namespace tombolo::ops
