#include "ir/graph_linker.h"

#include <utility>

namespace tombolo {

namespace {

bool same_entries(const std::vector<StringEntry>& a, const std::vector<StringEntry>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].key != b[i].key || a[i].value != b[i].value || a[i].unknown != b[i].unknown)
      return false;
  return true;
}

/// True when an entry says what the value says already.
bool says_same(const Value& value, const Type* type, const ValueInfo* info) {
  static const ValueInfo kNothing;
  const ValueInfo& a = value.info() != nullptr ? *value.info() : kNothing;
  const ValueInfo& b = info != nullptr ? *info : kNothing;
  return value.type() == type && a.doc == b.doc && a.unknown == b.unknown &&
         same_entries(a.metadata, b.metadata);
}

bool says_nothing(const Value& value) { return value.type() == nullptr && value.info() == nullptr; }

void give(Value& value, const Type* type, std::unique_ptr<ValueInfo> info) {
  value.set_type(type);
  if (info == nullptr) return;
  ValueInfo& own = value.ensure_info();
  own.doc = info->doc;
  own.metadata = std::move(info->metadata);
  own.unknown = info->unknown;
}

}  // namespace

GraphLinker::GraphLinker(Graph& graph, GraphLinker* parent, Options options)
    : graph_(graph), parent_(parent), options_(options) {}

Value* GraphLinker::make(Text name) {
  return options_.copy_names ? graph_.new_value(name) : graph_.new_value_view(name);
}

Value* GraphLinker::find_outside(Text name) const {
  for (const GraphLinker* outer = parent_; outer != nullptr; outer = outer->parent_)
    if (Value* value = outer->table_.find(name)) return value;
  return nullptr;
}

Value* GraphLinker::input(Text name, const Type* type, std::unique_ptr<ValueInfo> info) {
  Value* value = name.empty() ? nullptr : table_.find(name);
  if (value == nullptr || !value->is_undefined()) {
    const bool bind = value == nullptr && !name.empty();
    value = make(name);
    if (bind) table_.slot(value->name()) = value;
  }
  if (!options_.function) give(*value, type, std::move(info));
  graph_.define_input(value);
  return value;
}

Value* GraphLinker::initializer(std::unique_ptr<Constant> constant) {
  Value* value = constant->name.empty() ? nullptr : table_.find(constant->name);
  if (value == nullptr || value->is_initializer() || value->producer() != nullptr) {
    const bool bind = value == nullptr && !constant->name.empty();
    value = make(constant->name);
    if (bind) table_.slot(value->name()) = value;
  }
  constant->name = value->name();
  graph_.define_initializer(value, std::move(constant));
  return value;
}

Value* GraphLinker::sparse_initializer(std::unique_ptr<SparseConstant> constant) {
  const Text name = constant->values.name;
  Value* value = name.empty() ? nullptr : table_.find(name);
  if (value == nullptr || value->is_initializer() || value->producer() != nullptr) {
    const bool bind = value == nullptr && !name.empty();
    value = make(name);
    if (bind) table_.slot(value->name()) = value;
  }
  if (constant->has_values) constant->values.name = value->name();
  graph_.define_sparse_initializer(value, std::move(constant));
  return value;
}

void GraphLinker::value_info(Text name, const Type* type, std::unique_ptr<ValueInfo> info) {
  Value* value = name.empty() ? nullptr : table_.find(name);
  const bool has_entry = value != nullptr && (bare_.contains(value) || !says_nothing(*value) ||
                                              (value->is_input() && !options_.function));
  if (value == nullptr || (has_entry && !says_same(*value, type, info.get()))) {
    const bool bind = value == nullptr && !name.empty();
    value = make(name);
    if (bind) {
      table_.slot(value->name()) = value;
      loose_.push_back(value);
    }
  }
  give(*value, type, std::move(info));
  if (says_nothing(*value)) bare_.insert(value);
  graph_.add_value_info(value);
}

Value* GraphLinker::use(Text name) {
  if (name.empty()) return nullptr;
  if (Value* value = table_.find(name)) return value;
  if (Value* value = find_outside(name)) return value;
  Value* value = make(name);
  table_.slot(value->name()) = value;
  loose_.push_back(value);
  return value;
}

void GraphLinker::node_output(Node* node, Text name) {
  if (name.empty()) {
    node->add_absent_output();
    return;
  }
  Value* value = table_.find(name);
  if (value == nullptr || !value->is_undefined()) {
    const bool bind = value == nullptr;
    value = make(name);
    if (bind) table_.slot(value->name()) = value;
  }
  graph_.define_output(node, value);
}

void GraphLinker::output(Text name, const Type* type, std::unique_ptr<ValueInfo> info) {
  if (info == nullptr) info = std::make_unique<ValueInfo>();
  info->name = Text();
  info->type = type;
  if (options_.copy_names) name = graph_.storage().copy(name);
  pending_.push_back({&graph_, graph_.outputs().size(), name});
  graph_.outputs().push_back({nullptr, std::move(info)});
}

/// The entry's own words are dropped where the value says the same, and become the value's where
/// it says nothing yet.
void GraphLinker::bind_output(const PendingOutput& pending, Value* value) {
  pending.graph->set_output(pending.index, value);
  std::unique_ptr<ValueInfo>& declared = pending.graph->outputs()[pending.index].declared;
  if (options_.function && pending.graph == &graph_) {  // outputs of functions are names only
    declared.reset();
    return;
  }
  const bool own = &value->graph() == pending.graph;
  if (own && !value->is_input() && says_nothing(*value) && !bare_.contains(value)) {
    const Type* type = declared->type;
    const bool plain =
        declared->doc.empty() && declared->metadata.empty() && declared->unknown.empty();
    give(*value, type, plain ? nullptr : std::move(declared));
    declared.reset();
    if (says_nothing(*value)) bare_.insert(value);
  } else if (says_same(*value, declared->type, declared.get())) {
    declared.reset();
  }
}

void GraphLinker::finish() {
  for (Value* value : loose_)
    if (parent_ != nullptr && value->is_undefined() && value->has_uses())
      value->replace_all_uses_with(*parent_->use(value->name()));

  for (const PendingOutput& pending : std::exchange(pending_, {})) {
    Value* value = pending.name.empty() ? nullptr : table_.find(pending.name);
    if ((value == nullptr || value->is_undefined()) && parent_ != nullptr &&
        !pending.name.empty()) {
      parent_->pending_.push_back(pending);
      continue;
    }
    if (value == nullptr) value = pending.name.empty() ? make(pending.name) : use(pending.name);
    bind_output(pending, value);
  }
}

void GraphLinker::adopt() {
  auto bind = [&](Value* value) {
    if (value != nullptr && !value->name().empty() && table_.find(value->name()) == nullptr)
      table_.slot(value->name()) = value;
  };
  for (Value* value : graph_.inputs()) bind(value);
  for (Value* value : graph_.initializers()) bind(value);
  for (Value* value : graph_.sparse_initializers()) bind(value);
  for (Node* node : graph_.nodes())
    for (Value* value : node->outputs()) bind(value);
  for (Node* node : graph_.nodes())
    for (Value* value : node->inputs())
      if (value != nullptr && &value->graph() == &graph_) bind(value);
}

}  // namespace tombolo
