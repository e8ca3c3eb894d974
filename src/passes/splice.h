#pragma once

#include <span>
#include <vector>

#include "ir/splice.h"
#include "passes/rewriter.h"

namespace tombolo {

/// As splice of ir/splice.h, with the names of the rewriter, which learns that nodes came.
std::vector<Value*> splice(Rewriter& rewriter, const Graph& body, std::span<Value* const> inputs,
                           Node& before, std::vector<Node*>* made = nullptr);

}  // namespace tombolo
