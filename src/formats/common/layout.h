#pragma once

// Resolves channels-last layout. Importers write Transposes around every operator that wants
// channels first; this pass moves them down through what does not care about the order of axes,
// cancels pairs, and so leaves what a person would have written: one at an input, one at an
// output or before a Flatten, and none between.

#include "base/result.h"
#include "ir/graph.h"

namespace tombolo {

/// Types of all values must be set (GraphBuilder sets them); those of moved values are kept right.
Status resolve_layout(Graph& graph);

}  // namespace tombolo
