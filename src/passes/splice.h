#pragma once

#include <span>
#include <vector>

#include "passes/rewriter.h"

namespace tombolo {

/// Copies the nodes (and initialisers) of `body` before `before`, with `inputs` for its graph
/// inputs (null: absent), under new names. Gives what the body's outputs became; null where an
/// output is an absent input. `made` (if given) gets the copied nodes.
std::vector<Value*> splice(Rewriter& rewriter, const Graph& body, std::span<Value* const> inputs,
                           Node& before, std::vector<Node*>* made = nullptr);

}  // namespace tombolo
