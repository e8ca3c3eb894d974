#pragma once

// Constant targets of Reshape from shapes that inference knows.

#include "passes/rewriter.h"

namespace tombolo::passes {

/// A Reshape to the result gives shape `target` on every input of shape `source`. 0 copies a
/// dimension, -1 is the one that is left: only where none of the others can be 0. Nothing where no
/// list says it.
std::optional<std::vector<int64_t>> reshape_target(const SymShape& source, const SymShape& target);

/// Adds a Reshape of `input`, whose shape is `from`, to `to` before `before`, named after `hint`;
/// null where no list says that shape.
Node* add_reshape(Rewriter& rewriter, Node& before, Value* input, const SymShape& from,
                  const SymShape& to, Text hint);
inline Node* add_reshape(Rewriter& rewriter, Node& before, Value* input, const SymShape& from,
                         const SymShape& to) {
  return add_reshape(rewriter, before, input, from, to, input->name());
}

}  // namespace tombolo::passes
