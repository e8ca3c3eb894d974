#pragma once

// Types and shapes of the operators that importers write, as each node is made.

#include "base/result.h"

namespace tombolo {

class GraphBuilder;
class Node;

/// Sets the types of `node`'s outputs in the builder. Errors when its inputs cannot be right.
Status infer_builder_node(GraphBuilder& builder, const Node& node);

}  // namespace tombolo
