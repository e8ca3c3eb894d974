#pragma once

// A pass rewrites the graph and keeps what the model computes. It is a row: what it is called, what
// it does, from which level on it runs, and the function. Pipelines are plain lists of such rows
// (pipeline.h); `tombolo optimise --list` and docs/passes.md are made from the same table.
//
// The contract of a pass:
// - It edits through the Rewriter only, and reports how many changes it made; 0 means that the
// graph
//   is as it was.
// - Names and types of the graph's inputs and outputs stay; graph inputs are never removed; an
//   initialiser that is also an input is no constant.
// - Level 1 keeps every bit of every output. Level 2 may round otherwise (a weight is scaled before
//   the product instead of after it), never more than the types' precision explains, and keeps NaN,
//   infinities and empty tensors what they were. The result of levels 1 and 2 is standard ONNX.
//   Level 3 may write operators of com.microsoft that ONNX Runtime knows.

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "ops/schema.h"

namespace tombolo {

class Rewriter;

/// Rewrites, and returns the number of changes.
using PassFn = Result<size_t> (*)(Rewriter&);

struct Pass {
  Literal name;
  Literal doc;  ///< one line
  int level;    ///< the lowest level that runs it; kRuntimeLevel: only the runtime's own list
  PassFn run;
  /// Of the runtime's own: what it changed may be work again for the others.
  bool again = false;
};

inline constexpr int kRuntimeLevel = 9;

/// All passes, in the order in which a round runs them.
std::span<const Pass> all_passes();
const Pass* find_pass(std::string_view name);

}  // namespace tombolo
