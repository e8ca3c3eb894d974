// If whose condition is known becomes its branch; a Loop of few iterations becomes them.

#include "passes/loops.h"
#include "passes/passes.h"
#include "passes/splice.h"

namespace tombolo::passes {
namespace {

bool is_deterministic(const Rewriter& rewriter, Graph& body) {
  bool fine = true;
  for_each_graph(body, [&](Graph& graph) {
    for (const Node* node : graph.nodes()) {
      const OpDecl* decl = rewriter.declaration(*node);
      fine &= decl != nullptr && decl->determinism != Determinism::kRandom;
    }
  });
  return fine;
}

/// Gives the outputs of `node` over to `values` and erases it.
void hand_over(Rewriter& rewriter, Node& node, const std::vector<Value*>& values) {
  for (size_t i = 0; i < node.outputs().size() && i < values.size(); ++i)
    if (node.output(i) != nullptr && values[i] != nullptr)
      rewriter.replace(*node.output(i), *values[i]);
  rewriter.erase(node);
}

bool all_there(const Node& node, const std::vector<Value*>& values) {
  for (size_t i = 0; i < node.outputs().size(); ++i)
    if (node.output(i) != nullptr && node.output(i)->has_uses() &&
        (i >= values.size() || values[i] == nullptr))
      return false;
  return true;
}

size_t decide(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "If")) return 0;
  const auto condition = rewriter.scalar(node.input(0));
  if (!condition) return 0;
  Attribute* branch = node.attribute(*condition != 0 ? "then_branch" : "else_branch");
  if (branch == nullptr || branch->graph() == nullptr || !branch->graph()->inputs().empty() ||
      branch->graph()->outputs().size() != node.outputs().size() || !branch->graph()->sort() ||
      !branch->graph()->sparse_initializers().empty())
    return 0;
  hand_over(rewriter, node, splice(rewriter, *branch->graph(), {}, node));
  return 1;
}

size_t unroll(Rewriter& rewriter, Node& node) {
  const auto loop = LoopParts::of(rewriter, node);
  const auto trips = loop ? loop->trips(rewriter) : std::nullopt;
  if (!trips || !trips->is_value()) return 0;
  Graph& body = loop->body();
  if (!body.sort() || !is_deterministic(rewriter, body)) return 0;
  const size_t carried = loop->carried();
  size_t inner = 1;
  for_each_graph(body, [&](Graph& graph) { inner += graph.node_count(); });
  const auto count = static_cast<uint64_t>(trips->value());
  if (count > rewriter.limits.unroll_nodes || count * inner > rewriter.limits.unroll_nodes)
    return 0;
  // A scanned value of a type without Unsqueeze and Concat (a sequence) stays in the Loop.
  for (size_t i = carried; i < node.outputs().size(); ++i)
    if (rewriter.dtype(node.output(i)) == DType::kUndefined) return 0;

  Graph& graph = node.graph();
  const uint8_t yes[] = {1};
  Value* holds = rewriter.initializer(graph, Tensor::of<uint8_t>(DType::kBool, {}, yes), "cond");
  std::vector<Value*> state;
  for (size_t i = 0; i < carried; ++i) state.push_back(loop->initial(i));
  std::vector<std::vector<Value*>> scanned(node.outputs().size() - carried);
  for (uint64_t i = 0; i < count; ++i) {
    std::vector<Value*> inputs = {
        rewriter.initializer(graph, Tensor::scalar_int64(static_cast<int64_t>(i)), "iteration"),
        holds};
    inputs.insert(inputs.end(), state.begin(), state.end());
    const std::vector<Value*> outputs = splice(rewriter, body, inputs, node);
    for (size_t k = 0; k < carried; ++k) state[k] = outputs[k + 1];
    for (size_t k = 0; k < scanned.size(); ++k) scanned[k].push_back(outputs[carried + 1 + k]);
  }
  std::vector<Value*> results = state;
  for (std::vector<Value*>& parts : scanned) {
    const int64_t zero[] = {0};
    std::vector<Value*> rows;
    for (Value* part : parts)
      rows.push_back(
          rewriter
              .add(node, "Unsqueeze", {part, rewriter.ints_initializer(graph, zero, "axes")}, "row")
              .output(0));
    Node& joined = rewriter.add(node, "Concat", rows, "rows");
    joined.set_int("axis", 0);
    rewriter.touch(joined);
    results.push_back(joined.output(0));
  }
  if (!all_there(node, results)) return 0;
  hand_over(rewriter, node, results);
  return 1;
}

template <typename Change>
size_t everywhere(Rewriter& rewriter, Change change) {
  rewriter.refresh();
  size_t count = 0;
  // The graph below the node goes with it: outer graphs first, and anew after a change.
  for (bool again = true; again;) {
    again = false;
    rewriter.for_each([&](Graph& graph) {
      if (again) return;
      for (Node* node : graph.nodes())
        if (change(rewriter, *node) != 0) {
          ++count;
          again = true;
          return;
        }
    });
  }
  return count;
}

}  // namespace

Result<size_t> decide_branches(Rewriter& rewriter) { return everywhere(rewriter, decide); }
Result<size_t> unroll_loops(Rewriter& rewriter) { return everywhere(rewriter, unroll); }

}  // namespace tombolo::passes
