#include <algorithm>

#include "analysis/checker_impl.h"
#include "analysis/type_pool.h"

namespace tombolo {

namespace {
constexpr int kMaxGraphDepth = 100;
constexpr int kMaxTypeDepth = 64;

/// Names that stand in `names` more than once, each once. Sorts.
std::vector<std::string_view> duplicates(std::vector<std::string_view>& names) {
  std::sort(names.begin(), names.end());
  std::vector<std::string_view> out;
  for (size_t i = 1; i < names.size(); ++i)
    if (names[i] == names[i - 1] && (out.empty() || out.back() != names[i]))
      out.push_back(names[i]);
  return out;
}
}  // namespace

void Checker::graph(const Graph& graph, const Scope* outer, const Unit& unit, const Place& place) {
  Scope scope;
  scope.graph = &graph;
  scope.outer = outer;
  scope.unit = &unit;
  scope.depth = outer != nullptr ? outer->depth + 1 : 0;
  if (scope.depth > kMaxGraphDepth) return;  // readers do not let such a file in
  const bool is_function = unit.function != nullptr && outer == nullptr;
  if (graph.name.empty() && !is_function)
    report(rules::kGraphName, place, "the graph has no name", "name it");
  if (graph.extra) {
    metadata(graph.extra->metadata, place);
    if (!graph.extra->metadata.empty() && !is_function) needs_ir(10, "metadata of graphs", place);
  }
  names(graph, scope, place);
  ports(graph, scope, place);
  annotations(graph, scope, place);
  int64_t index = 0;
  for (const Node* node : graph.nodes()) {
    const Place node_place = Place::of_node(*node, index++, &place);
    uses(*node, node_place);
    this->node(*node, scope, node_place);
    for (const Value* output : node->outputs())
      if (output != nullptr) define(*output);
  }
  // Outputs, now that all is defined.
  std::vector<std::string_view> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value == nullptr || output.value->name().empty()) {
      report(rules::kEmptyName, place, "a graph output has no name");
      continue;
    }
    const Value& value = *output.value;
    outputs.push_back(value.name());
    const Place here = Place::named("output", value.name(), &place);
    if (is_borrowed(value)) continue;
    if (value.is_undefined() || !is_defined(value))
      report(rules::kUndefinedOutput, here,
             "nothing defines the graph output " + quote_name(value.name()));
    else if (&value.graph() != &graph)
      report(rules::kOuterOutput, here,
             "the subgraph hands out " + quote_name(value.name()) + " of the graph around it",
             "put an Identity node in between: some runtimes refuse this form");
  }
  for (const std::string_view name : duplicates(outputs))
    report(rules::kDuplicateOutput, place,
           "the graph output " + quote_name(name) + " is there twice",
           "give the second one a name of its own with an Identity node");
}

void Checker::names(const Graph& graph, Scope& scope, const Place& place) {
  std::vector<std::string_view> inputs, initializers, nodes;
  std::vector<std::string_view>& all = scope.names;
  for (const Value* value : graph.inputs()) {
    inputs.push_back(value->name());
    all.push_back(value->name());
    define(*value);
    if (value->name().empty()) report(rules::kEmptyName, place, "a graph input has no name");
  }
  const auto add_initializer = [&](const Value* value) {
    initializers.push_back(value->name());
    define(*value);
    if (!value->is_input()) all.push_back(value->name());
    if (value->name().empty()) report(rules::kEmptyName, place, "an initialiser has no name");
  };
  for (const Value* value : graph.initializers()) add_initializer(value);
  for (const Value* value : graph.sparse_initializers()) add_initializer(value);
  for (const std::string_view name : duplicates(inputs))
    report(rules::kDuplicateInput, place, "two graph inputs are named " + quote_name(name));
  for (const std::string_view name : duplicates(initializers))
    report(rules::kDuplicateInitializer, place, "two initialisers are named " + quote_name(name));

  // A name that inputs or initialisers hold twice was reported; with nodes it is a new fault.
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const Node* node : graph.nodes()) {
    if (!node->name().empty()) nodes.push_back(node->name());
    for (const Value* output : node->outputs())
      if (output != nullptr) all.push_back(output->name());
  }
  for (const std::string_view name : duplicates(all))
    report(rules::kDuplicateValue, place, "the name " + quote_name(name) + " is defined twice",
           "every value needs a name of its own");
  for (const std::string_view name : duplicates(nodes))
    report(rules::kDuplicateNode, place, "two nodes are named " + quote_name(name));
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const Scope* around = scope.outer; around != nullptr; around = around->outer) {
    if (around->names.empty() || all.empty()) continue;
    for (const std::string_view name : all)
      if (std::binary_search(around->names.begin(), around->names.end(), name))
        report(rules::kShadowedValue, place,
               "the name " + quote_name(name) + " is also one of the graph around this one",
               "rename it: readers disagree about which one is meant");
  }
}

void Checker::uses(const Node& node, const Place& place) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Value* value = node.inputs()[i];
    if (value == nullptr || is_defined(*value) || is_borrowed(*value)) continue;
    const Place here = Place::named("input", value->name(), &place);
    if (value->is_undefined()) {
      report(rules::kUndefined, here, "nothing defines " + quote_name(value->name()));
    } else {
      report(
          rules::kUnsorted, here,
          quote_name(value->name()) + " is used before it is made" +
              (value->producer() != nullptr ? " by " + std::string(value->producer()->op_type()) +
                                                  " " + quote_name(value->producer()->name())
                                            : std::string()),
          "nodes must stand behind those whose outputs they take");
    }
  }
}

void Checker::ports(const Graph& graph, const Scope& scope, const Place& place) {
  const bool is_main = scope.outer == nullptr && scope.unit->function == nullptr;
  const bool is_body = scope.outer == nullptr && scope.unit->function != nullptr;
  for (const Value* value : graph.inputs()) {
    const Place here = Place::named("input", value->name(), &place);
    if (is_main || value->type() != nullptr) type(value->type(), is_main, here);
    if (const Constant* constant = value->initializer();
        constant != nullptr && value->type() != nullptr && value->type()->is_tensor()) {
      const Merge merged = merge_types(from_declared(*value->type()), from_constant(*constant));
      if (merged.conflict != Merge::Conflict::kNone && merged.provable)
        report(rules::kInitializerType, here,
               "the input is declared " + to_string(*value->type()) + ", but its initialiser is " +
                   type_text(from_constant(*constant)));
    }
  }
  const auto initializer = [&](const Value* value) {
    const Place here = Place::named("initializer", value->name(), &place);
    if (value->initializer() != nullptr) constant(*value->initializer(), here);
    if (value->sparse_initializer() != nullptr) {
      needs_ir(6, "sparse initialisers", here);
      sparse(*value->sparse_initializer(), here);
    }
    if (is_main && model_.has_ir_version && model_.ir_version < 4 && !value->is_input())
      report(rules::kInitializerNotInput, here,
             "the initialiser is not among the graph inputs, which IR " +
                 std::to_string(model_.ir_version) + " asks for",
             "raise ir_version to 4 or add the input");
  };
  for (const Value* value : graph.initializers()) initializer(value);
  for (const Value* value : graph.sparse_initializers()) initializer(value);
  if (is_body && (!graph.initializers().empty() || !graph.sparse_initializers().empty()))
    report(rules::kBadType, place, "a function cannot have initialisers");
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value == nullptr) continue;
    const Type* declared = output.declared != nullptr && output.declared->type != nullptr
                               ? output.declared->type
                               : output.value->type();
    const Place here = Place::named("output", output.value->name(), &place);
    if (is_main || declared != nullptr) type(declared, is_main, here);
  }
  std::unordered_set<const Value*> seen;
  for (const Value* value : graph.value_infos()) {
    const Place here = Place::named("value_info", value->name(), &place);
    if (value->is_undefined() && value->uses().empty() && value->output_uses() == 0)
      report(rules::kUnknownValueInfo, here,
             "value_info describes " + quote_name(value->name()) + ", which is not in the graph");
    if (!seen.insert(value).second)
      report(rules::kUnknownValueInfo, here,
             "value_info describes " + quote_name(value->name()) + " twice");
    if (value->type() != nullptr) type(value->type(), false, here);
  }
}

void Checker::type(const Type* type, bool complete, const Place& place, int depth) {
  if (depth > kMaxTypeDepth) return;
  if (type == nullptr || type->kind == Type::Kind::kNone) {
    if (complete) report(rules::kMissingType, place, "there is no type", "declare it");
    return;
  }
  switch (type->kind) {
    case Type::Kind::kTensor:
    case Type::Kind::kSparseTensor: {
      if (type->kind == Type::Kind::kSparseTensor) needs_ir(8, "the sparse tensor type", place);
      if (!type->has_elem_type || type->elem_type == 0) {
        if (complete) report(rules::kMissingType, place, "the type has no element type");
      } else if (type->dtype() == DType::kUndefined) {
        report(rules::kBadType, place,
               "the element type is " + std::to_string(type->elem_type) + ", which is no type");
      } else {
        element_type_ir(type->dtype(), place);
      }
      if (complete && depth == 0 && !type->has_shape)
        report(rules::kMissingType, place, "the type has no shape",
               "give at least the rank: dimensions may be unknown");
      for (size_t i = 0; i < type->dims.size(); ++i)
        if (type->dims[i].value < 0)
          report(rules::kNegativeDimension, place,
                 "dimension " + std::to_string(i) + " is " + std::to_string(type->dims[i].value),
                 "leave an unknown dimension empty, or name it");
      return;
    }
    case Type::Kind::kOptional:
      needs_ir(8, "the optional type", place);
      [[fallthrough]];
    case Type::Kind::kSequence:
      if (type->element == nullptr) {
        if (complete) report(rules::kMissingType, place, "the type has no element type");
        return;
      }
      return this->type(type->element, complete, place, depth + 1);
    case Type::Kind::kMap: {
      const auto key = dtype_from_number(type->key_type);
      if (!key || !(is_integer(*key) || *key == DType::kString) || is_sub_byte(*key))
        report(rules::kBadType, place,
               "the key type of the map is " + std::to_string(type->key_type) +
                   ", neither an integer type nor string");
      if (type->element == nullptr) {
        if (complete) report(rules::kMissingType, place, "the map has no value type");
        return;
      }
      return this->type(type->element, complete, place, depth + 1);
    }
    case Type::Kind::kOpaque:
    case Type::Kind::kNone:
      return;
  }
}

void Checker::annotations(const Graph& graph, const Scope& scope, const Place& place) {
  if (!graph.extra || graph.extra->quantization.empty()) return;
  needs_ir(5, "quantization annotations", place);
  const auto known = [&scope](std::string_view name) {
    return std::binary_search(scope.names.begin(), scope.names.end(), name);
  };
  std::unordered_set<std::string_view> seen;
  for (const QuantizationAnnotation& annotation : graph.extra->quantization) {
    const Place here = Place::named("quantization_annotation", annotation.tensor_name, &place);
    if (!known(annotation.tensor_name))
      report(rules::kQuantization, here,
             "the graph has no tensor " + quote_name(annotation.tensor_name));
    if (!seen.insert(annotation.tensor_name).second)
      report(rules::kQuantization, here, "the tensor is annotated twice");
    std::unordered_set<std::string_view> keys;
    for (const StringEntry& entry : annotation.parameters) {
      if (!keys.insert(entry.key).second)
        report(rules::kQuantization, here, "the key " + quote_name(entry.key) + " is there twice");
      if (!known(entry.value))
        report(rules::kQuantization, here,
               quote_name(entry.key) + " names the tensor " + quote_name(entry.value) +
                   ", which is not in the graph");
    }
  }
}

}  // namespace tombolo
