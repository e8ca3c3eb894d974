#pragma once

#include <optional>
#include <vector>

#include "passes/rewriter.h"

namespace tombolo::passes {

/// The axes in the order in which a Transpose gives them, each once; nothing for any other node, or
/// where a file says anything else.
std::optional<std::vector<int64_t>> perm_of(const Rewriter& rewriter, const Node* node);

}  // namespace tombolo::passes
