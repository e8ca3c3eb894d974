#pragma once

// What nobody reads goes (dead_code.cpp).

#include "passes/rewriter.h"

namespace tombolo::passes {

/// Erases the nodes of the graph and of those inside it whose outputs nobody reads, and what only
/// they read; how many.
size_t erase_dead_nodes(Rewriter& rewriter, Graph& graph);

}  // namespace tombolo::passes
