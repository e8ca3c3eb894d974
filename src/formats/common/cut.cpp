#include "formats/common/cut.h"

#include <algorithm>
#include <unordered_map>

namespace tombolo {

namespace {

/// Node outputs and graph inputs by name.
std::unordered_map<std::string_view, Value*> values_by_name(const Graph& graph) {
  std::unordered_map<std::string_view, Value*> values;
  for (Value* value : graph.inputs()) values.emplace(value->name(), value);
  for (Value* value : graph.initializers()) values.emplace(value->name(), value);
  for (const Node* node : graph.nodes())
    for (Value* value : node->outputs())
      if (value != nullptr) values.emplace(value->name(), value);
  return values;
}

Result<Value*> find(const std::unordered_map<std::string_view, Value*>& values,
                    const std::string& name) {
  auto found = values.find(name);
  if (found == values.end())
    return usage_error("the graph has no value \"" + name + "\"")
        .with_help("`tombolo infer MODEL` lists the values");
  return found->second;
}

void drop_unused(Graph& graph) {
  std::vector<Node*> nodes;
  for (Node* node : graph.nodes()) nodes.push_back(node);
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const auto outputs = (*it)->outputs();
    if (std::none_of(outputs.begin(), outputs.end(),
                     [](const Value* value) { return value != nullptr && value->has_uses(); }))
      graph.erase(*it);
  }
  for (const auto* list : {&graph.initializers(), &graph.sparse_initializers()}) {
    const std::vector<Value*> values = *list;
    for (Value* value : values)
      if (!value->has_uses() && !value->is_input()) graph.remove_initializer(value);
  }
}

}  // namespace

Status cut_graph(Model& model, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs) {
  if (inputs.empty() && outputs.empty()) return ok();
  if (!model.graph) return parse_error("the model has no graph");
  Graph& graph = *model.graph;
  if (!graph.sort()) return parse_error("the graph has a cycle");
  const auto values = values_by_name(graph);
  if (!outputs.empty()) {
    std::vector<Value*> wanted;
    for (const std::string& name : outputs) {
      // An output of the model may go by a name of its own.
      Value* value = nullptr;
      for (const GraphOutput& output : graph.outputs())
        if (output.declared && output.declared->name == name) value = output.value;
      if (value == nullptr) {
        TRY(value, find(values, name));
      }
      wanted.push_back(value);
    }
    while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
    for (Value* value : wanted) graph.add_output(value);
  }
  if (inputs.empty()) {
    drop_unused(graph);
    return ok();
  }
  std::vector<Value*> wanted;
  for (const std::string& name : inputs) {
    TRY(Value * value, find(values, name));
    wanted.push_back(value);
  }
  const std::vector<Value*> before = graph.inputs();
  for (Value* input : before) graph.remove_input(input);
  for (Value*& value : wanted) {
    if (value->producer() == nullptr) {
      graph.define_input(value);
      continue;
    }
    Value* fed = graph.new_value_view(value->name());
    fed->set_type(value->type());
    value->replace_all_uses_with(*fed);
    graph.define_input(fed);
    value = fed;
  }
  drop_unused(graph);
  std::string missing;
  for (Value* input : before)
    if (!input->is_input() && input->has_uses() && !input->is_initializer())
      missing += (missing.empty() ? "" : ", ") + std::string(input->name());
  if (!missing.empty())
    return usage_error("the outputs still need the inputs " + missing)
        .with_help("name them among the inputs too, or cut behind them");
  return ok();
}

}  // namespace tombolo
