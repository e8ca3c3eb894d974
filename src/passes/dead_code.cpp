// What nobody reads: nodes, initialisers, optional outputs, functions, imports.

#include <set>

#include "ops/registry.h"
#include "passes/dead_code.h"
#include "passes/elements.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

bool is_dead(const Node& node) {
  for (const Value* output : node.outputs())
    if (output != nullptr && output->has_uses()) return false;
  return true;
}

size_t remove_dead_initializers(Rewriter& rewriter, Graph& graph) {
  size_t count = 0;
  const auto sweep = [&](const std::vector<Value*>& list) {
    // From the back, where remove_initializer() looks first.
    const std::vector<Value*> all(list.rbegin(), list.rend());
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

std::optional<double> filling_of(const Node& constant_of_shape) {
  const Constant* number = AttributeReader(constant_of_shape).get_tensor("value");
  if (number == nullptr) return 0;
  const auto tensor = number->value(constant_of_shape.graph().storage_ptr());
  if (!tensor || tensor->size() != 1 || tensor->is_string() || is_complex(tensor->dtype()))
    return std::nullopt;
  return tensor->get_double(0);
}

bool is_all_zero(const Rewriter& rewriter, const Value* value) {
  // Behind what only moves or repeats elements.
  constexpr int kDeepest = 64;
  for (int depth = 0; depth < kDeepest && value != nullptr; ++depth) {
    const Node* node = value->producer();
    if (!rewriter.is(node, "Expand") && !rewriter.is(node, "Unsqueeze") &&
        !rewriter.is(node, "Squeeze") && !rewriter.is(node, "Reshape") &&
        !rewriter.is(node, "Transpose"))
      break;
    value = node->input(0);
  }
  if (const Node* node = rewriter.producer(value, "ConstantOfShape")) return filling_of(*node) == 0;
  const auto dims =
      value != nullptr && rewriter.is_constant(value) ? rewriter.dims(value) : std::nullopt;
  if (!dims || element_count(*dims) > (1 << 20)) return false;
  const Tensor* tensor = rewriter.constant(value);
  if (tensor == nullptr || tensor->is_string() || is_complex(tensor->dtype())) return false;
  for (int64_t i = 0; i < tensor->size(); ++i)
    if (tensor->get_double(i) != 0) return false;
  return true;
}

namespace {

bool is_one_everywhere(const Rewriter& rewriter, const Value* value) {
  const auto values = rewriter.ints(value);
  if (!values) return false;
  for (const int64_t one : *values)
    if (one != 1) return false;
  return true;
}

}  // namespace

/// Optional inputs that say what their absence says: states of a recurrence that begin as zeros,
/// steps of 1, bounds at infinity, padding with zeros.
Result<size_t> remove_default_inputs(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  const auto drop = [&](Node& node, size_t index) {
    if (node.input(index) == nullptr) return;
    node.set_input(static_cast<uint32_t>(index), nullptr);
    while (!node.inputs().empty() && node.inputs().back() == nullptr)
      node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
    rewriter.touch(node);
    ++count;
  };
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (rewriter.is(node, "LSTM") || rewriter.is(node, "GRU") || rewriter.is(node, "RNN")) {
        for (const size_t index : {size_t(6), size_t(5)})
          if (node->input(index) != nullptr && is_all_zero(rewriter, node->input(index)))
            drop(*node, index);
      } else if (rewriter.is(node, "Slice")) {
        if (node->input(4) != nullptr && is_one_everywhere(rewriter, node->input(4)))
          drop(*node, 4);
      } else if (rewriter.is(node, "Pad")) {
        if (node->input(2) != nullptr && rewriter.dtype(node->input(2)) != DType::kString &&
            node->input(3) == nullptr && is_all_zero(rewriter, node->input(2)) &&
            AttributeReader(*node).get_string("mode", "constant") == "constant")
          drop(*node, 2);
      }
    }
  });
  return count;
}

}  // namespace tombolo::passes
