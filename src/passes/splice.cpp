#include "passes/splice.h"

#include "ir/clone.h"

namespace tombolo {
namespace {

/// Names inside a body are its own: the copies get new ones.
void rename_inner(Rewriter& rewriter, Graph& graph) {
  const auto rename = [&](Value* value) {
    if (value != nullptr && !value->name().empty())
      value->set_name(rewriter.unique_name(value->name()));
  };
  for (Value* value : graph.inputs()) rename(value);
  for (Value* value : graph.initializers()) {
    if (!value->is_input()) rename(value);
    value->initializer()->name = value->name();
  }
  for (Node* node : graph.nodes()) {
    for (Value* output : node->outputs()) rename(output);
    for (Attribute& attribute : node->attributes())
      if (Graph* inner = attribute.graph()) rename_inner(rewriter, *inner);
  }
}

}  // namespace

std::vector<Value*> splice(Rewriter& rewriter, const Graph& body, std::span<Value* const> inputs,
                           Node& before, std::vector<Node*>* made) {
  Graph& graph = before.graph();
  const StoragePtr& storage = rewriter.model().storage_ptr();
  Cloner cloner(storage, storage);
  std::vector<Value*> absent;
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    Value* given = i < inputs.size() ? inputs[i] : nullptr;
    if (given == nullptr) {
      given = graph.new_value_view("");
      absent.push_back(given);
    }
    cloner.values[body.inputs()[i]] = given;
  }
  const auto is_absent = [&](const Value* value) {
    for (const Value* one : absent)
      if (one == value) return true;
    return false;
  };
  for (const Value* value : body.initializers()) {
    if (value->is_input()) continue;
    Constant constant = copy(*value->initializer());
    const Text name = rewriter.unique_name(value->name());
    constant.name = name;
    Value* own = graph.new_value_view(name);
    graph.define_initializer(own, std::make_unique<Constant>(std::move(constant)));
    cloner.values[value] = own;
  }
  for (Node* inner : body.nodes()) {
    Node* node = cloner.node(*inner, graph, &before);
    for (Value* output : node->outputs())
      if (output != nullptr) output->set_name(rewriter.unique_name(output->name()));
    for (Attribute& attribute : node->attributes())
      if (Graph* deeper = attribute.graph()) rename_inner(rewriter, *deeper);
    for (size_t i = node->inputs().size(); i-- > 0;)
      if (node->inputs()[i] != nullptr && is_absent(node->inputs()[i]))
        node->set_input(static_cast<uint32_t>(i), nullptr);
    if (made != nullptr) made->push_back(node);
  }
  std::vector<Value*> outputs;
  for (const GraphOutput& output : body.outputs()) {
    const auto found = cloner.values.find(output.value);
    Value* value = found != cloner.values.end() ? found->second : output.value;  // captured
    outputs.push_back(is_absent(value) ? nullptr : value);
  }
  rewriter.changed();
  return outputs;
}

}  // namespace tombolo
