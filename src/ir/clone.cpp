#include "ir/clone.h"

namespace tombolo {

Constant copy(const Constant& from) {
  Constant to;
  to.name = from.name;
  to.data_type = from.data_type;
  to.has_data_type = from.has_data_type;
  to.encoding = from.encoding;
  to.dims = from.dims;
  to.bytes = from.bytes;
  to.strings = from.strings;
  if (from.extra) to.extra = std::make_unique<Constant::Extra>(*from.extra);
  return to;
}

SparseConstant copy(const SparseConstant& from) {
  SparseConstant to;
  to.values = copy(from.values);
  to.indices = copy(from.indices);
  to.has_values = from.has_values;
  to.has_indices = from.has_indices;
  to.dims = from.dims;
  to.unknown = from.unknown;
  return to;
}

ValueInfo copy_info(const ValueInfo& from, const Type* type) {
  ValueInfo to = from;
  to.type = type;
  return to;
}

Cloner::Cloner(const StoragePtr& source, const StoragePtr& target)
    : source_(source), target_(target) {
  if (source_ != target_) target_->keep(source_);
}

const Type* Cloner::type(const Type* from) {
  if (from == nullptr || source_ == target_) return from;
  auto [entry, inserted] = types_.try_emplace(from, nullptr);
  if (!inserted) return entry->second;
  Type type = *from;
  type.element = this->type(from->element);
  return types_[from] = target_->intern(std::move(type));
}

Value* Cloner::declare(const Value& from, Graph& to) {
  Value* value = to.new_value_view(from.name());
  value->set_type(type(from.type()));
  if (from.info() != nullptr)
    value->ensure_info() = copy_info(*from.info(), type(from.info()->type));
  values[&from] = value;
  return value;
}

Value* Cloner::mapped(const Value* value, Graph& to) {
  if (value == nullptr) return nullptr;
  if (auto found = values.find(value); found != values.end()) return found->second;
  if (source_ == target_) return const_cast<Value*>(value);  // captured from around the copy
  return declare(*value, to);
}

Attribute Cloner::attribute(const Attribute& from, Graph* parent_graph, Node* parent_node) {
  Attribute to;
  to.name = from.name;
  to.type = from.type;
  to.has_type = from.has_type;
  if (from.extra) to.extra = std::make_unique<Attribute::Extra>(*from.extra);
  auto copy_graph = [&](const Graph& graph_from) {
    auto graph_to = std::make_unique<Graph>(
        parent_graph != nullptr ? parent_graph->storage_ptr() : target_, parent_node);
    graph(graph_from, *graph_to);
    return graph_to;
  };
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::unique_ptr<Constant>>) {
          to.value = std::make_unique<Constant>(copy(*value));
        } else if constexpr (std::is_same_v<T, std::unique_ptr<SparseConstant>>) {
          to.value = std::make_unique<SparseConstant>(copy(*value));
        } else if constexpr (std::is_same_v<T, std::unique_ptr<Graph>>) {
          to.value = copy_graph(*value);
        } else if constexpr (std::is_same_v<T, std::vector<std::unique_ptr<Graph>>>) {
          T list;
          for (const auto& item : value) list.push_back(copy_graph(*item));
          to.value = std::move(list);
        } else if constexpr (std::is_same_v<T, std::vector<Constant>> ||
                             std::is_same_v<T, std::vector<SparseConstant>>) {
          T list;
          for (const auto& item : value) list.push_back(copy(item));
          to.value = std::move(list);
        } else if constexpr (std::is_same_v<T, const Type*>) {
          to.value = type(value);
        } else if constexpr (std::is_same_v<T, std::vector<const Type*>>) {
          T list;
          for (const Type* item : value) list.push_back(type(item));
          to.value = std::move(list);
        } else {
          to.value = value;
        }
      },
      from.value);
  return to;
}

Node* Cloner::node(const Node& from, Graph& to, Node* before) {
  Node* node = to.add_node_view(from.op_type(), from.domain(), from.name());
  if (before != nullptr) to.move(node, before);
  node->set_opset_override(from.opset_override());
  if (from.extra() != nullptr) node->ensure_extra() = *from.extra();
  for (const Value* input : from.inputs()) node->add_input(mapped(input, to));
  for (const Value* output : from.outputs()) {
    if (output == nullptr) {
      node->add_absent_output();
      continue;
    }
    // A later node may already have named the output (an unsorted graph).
    auto found = values.find(output);
    Value* value = found != values.end() && found->second->is_undefined() ? found->second
                                                                          : declare(*output, to);
    to.define_output(node, value);
  }
  for (const Attribute& attribute_from : from.attributes())
    node->attributes().push_back(attribute(attribute_from, &to, node));
  return node;
}

void Cloner::graph(const Graph& from, Graph& to) {
  to.name = from.name;
  if (from.extra) to.extra = std::make_unique<Graph::Extra>(*from.extra);
  for (const Value* input : from.inputs()) to.define_input(declare(*input, to));
  for (const Value* value : from.initializers()) {
    auto found = values.find(value);
    Value* target = found != values.end() ? found->second : declare(*value, to);
    to.define_initializer(target, std::make_unique<Constant>(copy(*value->initializer())));
  }
  for (const Value* value : from.sparse_initializers()) {
    auto found = values.find(value);
    Value* target = found != values.end() ? found->second : declare(*value, to);
    to.define_sparse_initializer(
        target, std::make_unique<SparseConstant>(copy(*value->sparse_initializer())));
  }
  for (Node* item : from.nodes()) node(*item, to);
  for (const GraphOutput& output : from.outputs()) {
    to.add_output(mapped(output.value, to));
    if (output.declared)
      to.outputs().back().declared =
          std::make_unique<ValueInfo>(copy_info(*output.declared, type(output.declared->type)));
  }
  for (const Value* value : from.value_infos()) to.add_value_info(mapped(value, to));
}

std::unique_ptr<Model> clone(const Model& model) {
  auto storage = std::make_shared<Storage>();
  storage->set_folder(model.storage().folder());
  auto copy = std::make_unique<Model>(storage);
  Cloner cloner(model.storage_ptr(), storage);
  copy->has_ir_version = model.has_ir_version;
  copy->ir_version = model.ir_version;
  copy->opset_imports = model.opset_imports;
  copy->producer_name = model.producer_name;
  copy->producer_version = model.producer_version;
  copy->domain = model.domain;
  copy->doc = model.doc;
  copy->has_model_version = model.has_model_version;
  copy->model_version = model.model_version;
  copy->metadata = model.metadata;
  copy->configurations = model.configurations;
  copy->unknown = model.unknown;
  auto copy_graph = [&](const std::unique_ptr<Graph>& from) {
    if (!from) return std::unique_ptr<Graph>();
    auto to = std::make_unique<Graph>(storage);
    cloner.graph(*from, *to);
    return to;
  };
  copy->graph = copy_graph(model.graph);
  for (const TrainingInfo& from : model.training) {
    TrainingInfo to;
    to.initialization = copy_graph(from.initialization);
    to.algorithm = copy_graph(from.algorithm);
    to.initialization_binding = from.initialization_binding;
    to.update_binding = from.update_binding;
    to.unknown = from.unknown;
    copy->training.push_back(std::move(to));
  }
  for (const auto& from : model.functions) {
    auto to = std::make_unique<Function>(storage);
    to->name = from->name;
    to->domain = from->domain;
    to->overload = from->overload;
    to->doc = from->doc;
    to->attributes = from->attributes;
    for (const Attribute& attribute : from->attribute_protos)
      to->attribute_protos.push_back(cloner.attribute(attribute, nullptr, nullptr));
    to->opset_imports = from->opset_imports;
    to->metadata = from->metadata;
    to->unknown = from->unknown;
    cloner.graph(from->body, to->body);
    copy->functions.push_back(std::move(to));
  }
  return copy;
}

}  // namespace tombolo
