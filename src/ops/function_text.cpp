#include "ops/function_text.h"

#include <algorithm>
#include <set>

#include "base/json_quote.h"
#include "ir/borrowed.h"
#include "ir/clone.h"
#include "ir/text/printer.h"
#include "ops/json_text.h"

namespace tombolo {
namespace {

/// The names of a signature; a variadic at its end stands for the rest of `count`.
std::string names(std::span<const ResolvedParam> params, size_t count) {
  std::string out;
  if (params.empty() || params.back().option != Option::kVariadic) count = params.size();
  for (size_t i = 0; i < std::max(count, params.size()); ++i) {
    if (i >= count && params[i].option == Option::kVariadic) break;
    if (!out.empty()) out += ", ";
    out += function_name(params, i);
  }
  return out;
}

/// `name: type = default`, or the bare name where there is none.
std::string attribute_text(const AttrDecl& row) {
  std::string out(std::string_view(row.name));
  if (!row.spec.has_default) return out;
  out += ": ";
  for (const char c : to_string(row.spec.type)) out += static_cast<char>(c | 0x20);  // lower case
  return out + " = " + default_text(row.spec);
}

}  // namespace

std::string function_name(std::span<const ResolvedParam> params, size_t index) {
  if (params.empty()) return {};
  const size_t last = params.size() - 1;
  const ResolvedParam& param = params[std::min(index, last)];
  std::string name(param.name);
  return param.option == Option::kVariadic ? name + "_" + std::to_string(index - last) : name;
}

namespace {

std::string whole_text(const OpVersion& version, int opset, std::string_view body, size_t inputs,
                       size_t outputs) {
  const OpDecl& op = *version.decl;
  std::string out = "<domain: " + json_quote(op.domain) + ", opset_import: [\"\" : ";
  out += std::to_string(opset) + "]>\n" + std::string(std::string_view(op.name));
  if (!version.attributes.empty()) {
    std::string attributes;
    for (const AttrDecl* row : version.attributes) {
      // A subgraph is part of the body already.
      if (row->spec.type == AttrType::kGraph) continue;
      if (!attributes.empty()) attributes += ", ";
      attributes += attribute_text(*row);
    }
    if (!attributes.empty()) out += " <" + attributes + ">";
  }
  // Outputs that the node does not have need not be made.
  const auto made = std::span(version.outputs).first(std::min(outputs, version.outputs.size()));
  out += " (" + names(version.inputs, inputs) + ") => (" + names(made, outputs);
  out += ") {\n";
  out += body;
  return out + "}\n";
}

/// Every value that the nodes of `graph` and of the graphs inside make or declare.
template <typename Visit>
void for_each_value(Graph& graph, Visit&& visit) {
  for_each_graph(graph, [&](Graph& each) {
    for (Value* value : each.inputs()) visit(*value);
    for (Value* value : each.initializers())
      if (!value->is_input()) visit(*value);
    for (Node* node : each.nodes())
      for (Value* value : node->outputs())
        if (value != nullptr) visit(*value);
  });
}

/// Values of the graphs around `graph` that it reads, in the order of their reading.
std::vector<const Value*> values_from_outside(Graph& graph) {
  std::set<const Graph*> inside;
  for_each_graph(graph, [&](Graph& each) { inside.insert(&each); });
  std::vector<const Value*> found;
  const auto look = [&](const Value* value) {
    if (value != nullptr && !inside.contains(&value->graph()) &&
        std::find(found.begin(), found.end(), value) == found.end())
      found.push_back(value);
  };
  for_each_graph(graph, [&](Graph& each) {
    for (Node* node : each.nodes())
      for (const Value* value : node->inputs()) look(value);
    for (const GraphOutput& output : each.outputs()) look(output.value);
  });
  return found;
}

}  // namespace

std::string function_text(const OpVersion& version, int opset, std::string_view body) {
  return whole_text(version, opset, body, version.inputs.size(), version.outputs.size());
}

Result<std::vector<std::string>> FunctionContext::inline_graph(
    const Graph& graph, std::string_view prefix, std::span<const std::string> inputs) {
  if (graph.inputs().size() != inputs.size())
    return runtime_error("the subgraph takes " + std::to_string(graph.inputs().size()) +
                         " inputs, not " + std::to_string(inputs.size()));
  if (!graph.sparse_initializers().empty()) return unsupported("a sparse tensor in a subgraph");
  const auto storage = std::make_shared<Storage>();
  Graph copy(storage);
  Cloner cloner(graph.storage_ptr(), storage);
  const auto outside = values_from_outside(const_cast<Graph&>(graph));
  for (const Value* value : outside) {
    auto at = std::find(captured.begin(), captured.end(), value);
    if (at == captured.end()) at = captured.insert(at, value);
    cloner.values[value] = copy.new_value("outer_" + std::to_string(at - captured.begin()));
  }
  cloner.graph(graph, copy);
  size_t count = 0;
  for_each_value(
      copy, [&](Value& value) { value.set_name(std::string(prefix) + std::to_string(count++)); });
  for (size_t i = 0; i < inputs.size(); ++i) copy.inputs()[i]->set_name(inputs[i]);
  for (Value* value : copy.initializers()) {
    if (value->is_input()) continue;
    TRY(const Tensor tensor, value->initializer()->value(borrowed(storage)));
    Graph scratch(storage);
    Node& constant = *scratch.add_node("Constant");
    constant.set_tensor("value", tensor);
    constant.add_output(value->name());
    line(print_node(constant));
  }
  for (const Node* node : copy.nodes()) {
    if (node->opset_override() != 0) return unsupported("an operator of an older set in a body");
    line(print_node(*node));
  }
  std::vector<std::string> outputs;
  for (const GraphOutput& output : copy.outputs())
    outputs.emplace_back(output.value != nullptr ? output.value->name() : Text());
  return outputs;
}

Result<std::string> function_text(const FunctionBody& row, FunctionContext& context) {
  if (row.builder) {
    CHECK_OK(row.builder(context));
    return whole_text(context.version, context.opset, context.body, context.input_types.size(),
                      context.output_wanted.empty() ? context.version.outputs.size()
                                                    : context.output_wanted.size());
  }
  if (!row.text.empty()) return function_text(context.version, row.opset, row.text);
  return unsupported("the function body of " +
                     std::string(std::string_view(context.version.decl->name)) +
                     " is not written yet");
}

const FunctionBody* function_body(const OpVersion& version, int opset) {
  const FunctionBody* best = nullptr;
  for (const FunctionBody* row : version.functions)
    if (row->opset <= opset && (!best || row->opset > best->opset)) best = row;
  return best;
}

}  // namespace tombolo
