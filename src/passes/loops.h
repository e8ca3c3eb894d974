#pragma once

// What passes know of a Loop (simplify_loops.cpp): its parts, what is read when, how long it runs.

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "passes/rewriter.h"

namespace tombolo::passes {

/// Loop: outputs and states of the node, of its body, by number. `carried` states come first among
/// the node's outputs, what is scanned behind them.
class LoopParts {
 public:
  /// Nothing where the node is no Loop, or one whose parts do not fit together.
  static std::optional<LoopParts> of(const Rewriter& rewriter, Node& node);

  Node& node() const { return *node_; }
  Graph& body() const { return *body_; }
  size_t carried() const { return std::max<size_t>(node_->inputs().size(), 2) - 2; }
  size_t scanned() const { return node_->outputs().size() - carried(); }
  Value* iteration() const { return body_->inputs()[0]; }
  Value* condition() const { return body_->outputs()[0].value; }
  Value* state(size_t i) const { return body_->inputs()[i + 2]; }          ///< as a step begins
  Value* result(size_t i) const { return body_->outputs()[i + 1].value; }  ///< as a step ends
  Value* initial(size_t i) const { return node_->input(i + 2); }
  Value* final(size_t i) const { return node_->output(i); }
  Value* scan(size_t i) const { return result(carried() + i); }  ///< of one step
  Value* scanned_rows(size_t i) const { return node_->output(carried() + i); }

  /// How often the body runs, known or not; nothing where a condition may end it earlier.
  std::optional<SymDim> trips(const Rewriter& rewriter) const;
  /// A value of the graphs around that a node of the body reads row by row, from the first to the
  /// last; null where `value` is no such row.
  Value* rows_of(const Rewriter& rewriter, Value* value) const;

 private:
  bool is_step(const Rewriter& rewriter, const Value* value) const;

  Node* node_ = nullptr;
  Graph* body_ = nullptr;
};

/// Every Loop of the model, outermost first.
std::vector<Node*> all_loops(Rewriter& rewriter);

/// Without the Identities before it.
Value* behind_identity(const Rewriter& rewriter, Value* value);

/// All values that `roots` are computed of, themselves among them, as far as `stop` (which may be
/// null), which is not looked behind.
std::unordered_set<const Value*> ancestors(const std::vector<const Value*>& roots,
                                           const Value* stop);

}  // namespace tombolo::passes
