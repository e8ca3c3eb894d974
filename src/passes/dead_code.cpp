// What nobody reads: nodes, initialisers, optional outputs, functions, imports.

#include <set>

#include "ops/registry.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

bool is_dead(const Node& node) {
  for (const Value* output : node.outputs())
    if (output != nullptr && output->has_uses()) return false;
  return true;
}

/// Backwards, so that a chain goes at once: erasing a node frees what it read.
size_t erase_dead_nodes(Rewriter& rewriter, Graph& graph) {
  size_t count = 0;
  for (Node *node = graph.last_node(), *previous; node != nullptr; node = previous) {
    previous = node->previous();
    if (!is_dead(*node)) {
      for (Attribute& attribute : node->attributes())
        if (Graph* inner = attribute.graph()) count += erase_dead_nodes(rewriter, *inner);
      continue;
    }
    rewriter.erase(*node);
    ++count;
  }
  return count;
}

size_t remove_dead_initializers(Rewriter& rewriter, Graph& graph) {
  size_t count = 0;
  const auto sweep = [&](const std::vector<Value*>& list) {
    const std::vector<Value*> all = list;
    for (Value* value : all) {
      if (value->has_uses() || value->is_input()) continue;
      graph.remove_initializer(value);
      rewriter.changed();
      ++count;
    }
  };
  sweep(graph.initializers());
  sweep(graph.sparse_initializers());
  return count;
}

/// Entries of value_info for values that are gone.
void forget_dead_infos(Graph& graph) {
  std::vector<Value*> kept;
  for (Value* value : graph.value_infos())
    if (!value->is_undefined()) kept.push_back(value);
  if (kept.size() == graph.value_infos().size()) return;
  graph.clear_value_infos();
  for (Value* value : kept) graph.add_value_info(value);
}

void forget_dead_imports(Model& model) {
  std::set<std::string, std::less<>> used = {""};
  const auto look = [&](const Graph& graph) {
    for (const Node* node : graph.nodes()) used.emplace(canonical_domain(node->domain()));
  };
  if (model.graph) for_each_graph(*model.graph, look);
  for (TrainingInfo& training : model.training) {
    if (training.initialization) for_each_graph(*training.initialization, look);
    if (training.algorithm) for_each_graph(*training.algorithm, look);
  }
  for (auto& function : model.functions) {
    used.emplace(canonical_domain(function->domain));
    for_each_graph(function->body, look);
  }
  std::erase_if(model.opset_imports, [&](const OpsetImport& import) {
    return !used.contains(canonical_domain(import.domain));
  });
}

}  // namespace

Result<size_t> remove_dead_code(Rewriter& rewriter) {
  size_t count = 0;
  if (!rewriter.model().graph) return count;
  count += erase_dead_nodes(rewriter, *rewriter.model().graph);
  rewriter.for_each([&](Graph& graph) {
    count += remove_dead_initializers(rewriter, graph);
    forget_dead_infos(graph);
  });
  forget_dead_imports(rewriter.model());
  return count;
}

/// Optional outputs at the end that nobody reads are not asked for: Dropout's mask, MaxPool's
/// indices, BatchNormalization's statistics.
Result<size_t> remove_unused_outputs(Rewriter& rewriter) {
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->outputs().size() < 2 || rewriter.declaration(*node) == nullptr) continue;
      const OpVersion* version = resolve(
          *rewriter.declaration(*node),
          node->opset_override() > 0
              ? node->opset_override()
              : static_cast<int>(std::min<int64_t>(rewriter.model().opset(node->domain()), 9999)));
      if (version == nullptr) continue;
      while (node->outputs().size() > version->min_outputs && node->outputs().size() > 1 &&
             node->outputs().size() <= version->outputs.size()) {
        const size_t last = node->outputs().size() - 1;
        if (version->outputs[last].option != Option::kOptional) break;
        const Value* output = node->output(last);
        if (output != nullptr && output->has_uses()) break;
        node->remove_output(static_cast<uint32_t>(last));
        rewriter.changed();
        ++count;
      }
    }
  });
  return count;
}

}  // namespace tombolo::passes
