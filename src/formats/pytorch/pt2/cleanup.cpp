#include "formats/pytorch/pt2/cleanup.h"

#include <vector>

namespace tombolo::pytorch {
namespace {

bool has_optional_outputs(Text type) {
  for (const char* name : {"MaxPool", "LayerNormalization", "LSTM", "GRU", "RNN", "Unique"})
    if (type == name) return true;
  return false;
}

bool is_dead(const Node& node) {
  for (const Value* output : node.outputs())
    if (output && output->has_uses()) return false;
  return true;
}

void remove_dead(Graph& graph) {
  // Backwards: users stand behind what they use.
  std::vector<Node*> nodes;
  for (Node* node : graph.nodes()) nodes.push_back(node);
  for (size_t i = nodes.size(); i-- > 0;) {
    Node* node = nodes[i];
    if (is_dead(*node)) {
      graph.erase(node);
      continue;
    }
    for (Attribute& attribute : node->attributes())
      if (Graph* inner = attribute.graph()) remove_dead(*inner);
    // Optional outputs that nobody wants, from the end.
    while (has_optional_outputs(node->op_type()) && node->outputs().size() > 1 &&
           node->outputs().back() && !node->outputs().back()->has_uses())
      node->remove_output(static_cast<uint32_t>(node->outputs().size() - 1));
  }
}

}  // namespace

Status clean_up(Model& model) {
  Graph& graph = *model.graph;
  remove_dead(graph);
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers)
    if (!value->has_uses() && !value->is_input()) graph.remove_initializer(value);
  return ok();
}

}  // namespace tombolo::pytorch
