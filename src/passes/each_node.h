#pragma once

#include <utility>

#include "passes/rewriter.h"

namespace tombolo::passes {

/// change(rewriter, node), which says whether it changed anything, for each node with a result,
/// until one fails; how many it changed.
template <typename Change>
Result<size_t> change_each_node(Rewriter& rewriter, Change change) {
  rewriter.refresh();
  size_t count = 0;
  Status status = ok();
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (!status || node->outputs().empty() || node->output(0) == nullptr) continue;
      Result<bool> done = change(rewriter, *node);
      if (!done)
        status = std::move(done).error();
      else
        count += *done;
    }
  });
  CHECK_OK(status);
  return count;
}

}  // namespace tombolo::passes
