#include "ir/splice.h"

#include "ir/clone.h"

namespace tombolo {
namespace {

/// Names inside a body are its own: the copies get new ones.
void rename_inner(NameSource& names, Graph& graph) {
  const auto rename = [&](Value* value) {
    if (value != nullptr && !value->name().empty())
      value->set_name(names.fresh_name(value->name()));
  };
  for (Value* value : graph.inputs()) rename(value);
  for (Value* value : graph.initializers()) {
    if (!value->is_input()) rename(value);
    value->initializer()->name = value->name();
  }
  for (Node* node : graph.nodes()) {
    for (Value* output : node->outputs()) rename(output);
    for (Attribute& attribute : node->attributes())
      if (Graph* inner = attribute.graph()) rename_inner(names, *inner);
  }
}

}  // namespace

std::vector<Value*> splice(const StoragePtr& storage, NameSource& names, const Graph& body,
                           std::span<Value* const> inputs, Node& before, std::vector<Node*>* made) {
  Graph& graph = before.graph();
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
    const Text name = names.fresh_name(value->name());
    constant.name = name;
    Value* own = graph.new_value_view(name);
    graph.define_initializer(own, std::make_unique<Constant>(std::move(constant)));
    cloner.values[value] = own;
  }
  for (Node* inner : body.nodes()) {
    Node* node = cloner.node(*inner, graph, &before);
    for (Value* output : node->outputs())
      if (output != nullptr) output->set_name(names.fresh_name(output->name()));
    for (Attribute& attribute : node->attributes())
      if (Graph* deeper = attribute.graph()) rename_inner(names, *deeper);
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
  return outputs;
}

void bind_attributes(const StoragePtr& storage, Node& node, const Node& call,
                     const Function& function) {
  Cloner cloner(storage, storage);
  std::vector<Attribute> bound;
  for (Attribute& attribute : node.attributes()) {
    if (Graph* inner = attribute.graph())
      for (Node* deeper : inner->nodes()) bind_attributes(storage, *deeper, call, function);
    if (!attribute.is_reference()) {
      bound.push_back(std::move(attribute));
      continue;
    }
    const Attribute* given = call.attribute(attribute.ref_attr_name());
    for (const Attribute& fallback : function.attribute_protos)
      if (given == nullptr && fallback.name == attribute.ref_attr_name()) given = &fallback;
    if (given == nullptr) continue;  // absent at the call: absent here
    Attribute copy = cloner.attribute(*given, &node.graph(), &node);
    copy.name = attribute.name;
    bound.push_back(std::move(copy));
  }
  node.attributes() = std::move(bound);
}

}  // namespace tombolo
