#include "ir/graph.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_set>

namespace tombolo {

// ---- Value

void Value::set_name(Text name) { name_ = graph_->storage().copy(name); }

void Value::set_type(Type type) { type_ = graph_->storage().intern(std::move(type)); }

void Value::replace_all_uses_with(Value& other) {
  if (this == &other) return;
  for (const Use& use : uses_) {
    use.node->inputs_[use.index] = &other;
    other.uses_.push_back(use);
  }
  uses_.clear();
  if (output_uses_ == 0) return;
  // Outputs of this graph, and of subgraphs below it, may name the value.
  auto redirect = [&](auto&& self, Graph& graph) -> void {
    for (GraphOutput& output : graph.outputs_) {
      if (output.value != this) continue;
      if (!output.declared) {  // the graph's interface keeps its names and types
        output.declared = std::make_unique<ValueInfo>();
        output.declared->type = type_;
      }
      if (!present(output.declared->name)) output.declared->name = name_;
      output.value = &other;
      --output_uses_;
      ++other.output_uses_;
    }
    for (Node* node : graph.nodes())
      for (Attribute& attribute : node->attributes())
        if (Graph* inner = attribute.graph()) self(self, *inner);
  };
  redirect(redirect, *graph_);
}

// ---- Node

void Node::set_op_type(Text op_type) { op_type_ = graph_->storage().copy(op_type); }
void Node::set_domain(Text domain) { domain_ = graph_->storage().copy(domain); }
void Node::set_name(Text name) { name_ = graph_->storage().copy(name); }

void Node::add_use(Value* value, uint32_t index) {
  if (value != nullptr) value->uses_.push_back({this, index});
}

void Node::drop_use(Value* value, uint32_t index) {
  if (value == nullptr) return;
  auto& uses = value->uses_;
  for (uint32_t i = uses.size(); i-- > 0;) {
    if (uses[i] == Use{this, index}) {
      uses[i] = uses.back();
      uses.pop_back();
      return;
    }
  }
}

void Node::set_input(uint32_t index, Value* value) {
  while (inputs_.size() <= index) inputs_.push_back(nullptr);
  drop_use(inputs_[index], index);
  inputs_[index] = value;
  add_use(value, index);
}

void Node::add_input(Value* value) {
  inputs_.push_back(value);
  add_use(value, inputs_.size() - 1);
}

void Node::insert_input(uint32_t index, Value* value) {
  while (inputs_.size() < index) inputs_.push_back(nullptr);
  for (uint32_t i = index; i < inputs_.size(); ++i) drop_use(inputs_[i], i);
  inputs_.insert(index, value);
  for (uint32_t i = index; i < inputs_.size(); ++i) add_use(inputs_[i], i);
}

void Node::remove_input(uint32_t index) {
  if (index >= inputs_.size()) return;
  for (uint32_t i = index; i < inputs_.size(); ++i) drop_use(inputs_[i], i);
  inputs_.erase(index);
  for (uint32_t i = index; i < inputs_.size(); ++i) add_use(inputs_[i], i);
}

Value* Node::add_output(Text name) {
  Value* value = graph_->new_value(name);
  graph_->define_output(this, value);
  return value;
}

void Node::add_absent_output() { outputs_.push_back(nullptr); }

void Node::remove_output(uint32_t index) {
  if (index >= outputs_.size()) return;
  if (Value* value = outputs_[index]) value->producer_ = nullptr;
  outputs_.erase(index);
  for (uint32_t i = index; i < outputs_.size(); ++i)
    if (outputs_[i] != nullptr) outputs_[i]->index_ = i;
}

const Attribute* Node::attribute(Text name) const {
  for (const Attribute& attribute : attributes_)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

Attribute* Node::attribute(Text name) {
  return const_cast<Attribute*>(std::as_const(*this).attribute(name));
}

namespace {

/// What lies in the graphs of an attribute that goes uses values around it no more.
void drop_captures(Attribute& attribute) {
  const auto drop = [](Graph& graph) {
    for (Node* node : graph.nodes()) {
      for (uint32_t i = 0; i < node->inputs().size(); ++i) node->set_input(i, nullptr);
      for (Attribute& inner : node->attributes()) drop_captures(inner);
    }
    while (!graph.outputs().empty()) graph.remove_output(0);
  };
  if (Graph* graph = attribute.graph()) drop(*graph);
  if (auto* list = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value))
    for (auto& graph : *list) drop(*graph);
}

}  // namespace

void Node::remove_attribute(Text name) {
  for (Attribute& attribute : attributes_)
    if (attribute.name == name) drop_captures(attribute);
  std::erase_if(attributes_, [&](const Attribute& attribute) { return attribute.name == name; });
}

Attribute& Node::set_attribute(Attribute attribute) {
  attribute.name = graph_->storage().copy(attribute.name);
  if (Attribute* old = this->attribute(attribute.name)) {
    drop_captures(*old);
    *old = std::move(attribute);
    return *old;
  }
  attributes_.push_back(std::move(attribute));
  return attributes_.back();
}

Attribute& Node::set_int(Text name, int64_t value) {
  return set_attribute({name, AttrType::kInt, value});
}
Attribute& Node::set_float(Text name, float value) {
  return set_attribute({name, AttrType::kFloat, value});
}
Attribute& Node::set_string(Text name, Text value) {
  return set_attribute({name, AttrType::kString, graph_->storage().copy(value)});
}
Attribute& Node::set_ints(Text name, std::span<const int64_t> values) {
  return set_attribute({name, AttrType::kInts, std::vector<int64_t>(values.begin(), values.end())});
}
Attribute& Node::set_floats(Text name, std::span<const float> values) {
  return set_attribute({name, AttrType::kFloats, std::vector<float>(values.begin(), values.end())});
}
Attribute& Node::set_tensor(Text name, const Tensor& tensor) {
  return set_attribute(
      {name, AttrType::kTensor,
       std::make_unique<Constant>(Constant::from_tensor(tensor, Text(), graph_->storage()))});
}
Graph& Node::set_graph(Text name) {
  auto graph = std::make_unique<Graph>(graph_->storage_ptr(), this);
  Attribute& attribute = set_attribute({name, AttrType::kGraph, std::move(graph)});
  return *attribute.graph();
}

Node* Node::next() const {
  Node* node = next_;
  while (node != nullptr && node->erased_) node = node->next_;
  return node;
}

Node* Node::previous() const { return previous_; }

// ---- Graph

Graph::Graph(StoragePtr storage, Node* parent) : storage_(std::move(storage)), parent_(parent) {}

Graph::~Graph() {
  for (Node* node = first_; node != nullptr;) {
    Node* next = node->next_;
    delete node;
    node = next;
  }
  for (Node* node : graveyard_) delete node;
  for (Value* value : owned_) delete value;
}

Value* Graph::make_value(Text name) {
  auto* value = new Value;
  value->name_ = name;
  value->graph_ = this;
  value->id_ = storage_->next_id();
  owned_.push_back(value);
  return value;
}

Value* Graph::new_value(Text name) { return make_value(storage_->copy(name)); }
Value* Graph::new_value_view(Text name) { return make_value(name); }

void Graph::link(Node* node, Node* before) {
  node->next_ = before;
  node->previous_ = before != nullptr ? before->previous_ : last_;
  (node->previous_ != nullptr ? node->previous_->next_ : first_) = node;
  (before != nullptr ? before->previous_ : last_) = node;
  ++node_count_;
}

void Graph::unlink(Node* node) {
  (node->previous_ != nullptr ? node->previous_->next_ : first_) = node->next_;
  (node->next_ != nullptr ? node->next_->previous_ : last_) = node->previous_;
  --node_count_;
}

Node* Graph::add_node(Text op_type, Text domain, Node* before) {
  auto* node = new Node;
  node->graph_ = this;
  node->id_ = storage_->next_id();
  node->op_type_ = storage_->copy(op_type);
  if (present(domain)) node->domain_ = storage_->copy(domain);
  link(node, before);
  return node;
}

Node* Graph::add_node_view(Text op_type, Text domain, Text name) {
  auto* node = new Node;
  node->graph_ = this;
  node->id_ = storage_->next_id();
  node->op_type_ = op_type;
  node->domain_ = domain;
  node->name_ = name;
  link(node, nullptr);
  return node;
}

void Graph::erase(Node* node) {
  for (uint32_t i = 0; i < node->inputs_.size(); ++i) node->drop_use(node->inputs_[i], i);
  for (Attribute& attribute : node->attributes_) drop_captures(attribute);
  for (Value* value : node->outputs_)
    if (value != nullptr) {
      value->producer_ = nullptr;
      std::erase(value_infos_, value);
    }
  node->attributes_.clear();
  unlink(node);
  node->erased_ = true;
  graveyard_.push_back(node);
}

void Graph::move(Node* node, Node* before) {
  if (node == before) return;
  unlink(node);
  link(node, before);
}

Value* Graph::add_input(Text name, const Type* type) {
  Value* value = new_value(name);
  value->type_ = type;
  define_input(value);
  return value;
}

void Graph::define_input(Value* value) {
  value->is_input_ = true;
  inputs_.push_back(value);
}

void Graph::remove_input(Value* value) {
  std::erase(inputs_, value);
  value->is_input_ = false;
}

void Graph::define_output(Node* node, Value* value) {
  value->producer_ = node;
  value->index_ = node->outputs_.size();
  node->outputs_.push_back(value);
}

void Graph::define_initializer(Value* value, std::unique_ptr<Constant> constant) {
  value->initializer_ = std::move(constant);
  initializers_.push_back(value);
}

void Graph::define_sparse_initializer(Value* value, std::unique_ptr<SparseConstant> constant) {
  value->sparse_ = std::move(constant);
  sparse_initializers_.push_back(value);
}

Value* Graph::add_initializer(Constant constant) {
  Value* value = nullptr;
  for (Value* input : inputs_)
    if (input->name_ == constant.name && !input->is_initializer()) value = input;
  if (value == nullptr) value = new_value(constant.name);
  constant.name = value->name_;
  define_initializer(value, std::make_unique<Constant>(std::move(constant)));
  return value;
}

Value* Graph::add_initializer(Text name, const Tensor& tensor) {
  return add_initializer(Constant::from_tensor(tensor, name, *storage_));
}

Value* Graph::add_sparse_initializer(SparseConstant constant) {
  Value* value = new_value(constant.values.name);
  define_sparse_initializer(value, std::make_unique<SparseConstant>(std::move(constant)));
  return value;
}

void Graph::set_initializer(Value* value, Constant constant) {
  constant.name = value->name_;
  if (value->initializer_ == nullptr) initializers_.push_back(value);
  value->initializer_ = std::make_unique<Constant>(std::move(constant));
}

void Graph::remove_initializer(Value* value) {
  // From the back: whoever removes many begins there.
  for (auto* list : {&initializers_, &sparse_initializers_})
    if (const auto at = std::find(list->rbegin(), list->rend(), value); at != list->rend())
      list->erase(std::next(at).base());
  value->initializer_.reset();
  value->sparse_.reset();
}

void Graph::add_output(Value* value) {
  ++value->output_uses_;
  outputs_.push_back({value, nullptr});
}

void Graph::set_output(size_t index, Value* value) {
  GraphOutput& output = outputs_[index];
  if (output.value != nullptr) --output.value->output_uses_;
  output.value = value;
  ++value->output_uses_;
}

void Graph::remove_output(size_t index) {
  --outputs_[index].value->output_uses_;
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Graph::add_value_info(Value* value) { value_infos_.push_back(value); }

Text Graph::unique_name(Text hint) {
  const Graph* root = this;
  while (root->parent_ != nullptr) root = &root->parent_->graph();
  std::unordered_set<std::string_view> taken;
  auto collect = [&](auto&& self, const Graph& graph) -> void {
    for (const Value* value : graph.owned_) taken.insert(value->name_);
    for (Node* node : graph.nodes())
      for (Attribute& attribute : node->attributes())
        if (Graph* inner = attribute.graph()) self(self, *inner);
  };
  collect(collect, *root);
  std::string name(hint.empty() ? Text("value") : hint);
  const std::string stem = name;
  for (int suffix = 1; taken.contains(name); ++suffix) name = stem + "_" + std::to_string(suffix);
  return storage_->copy(name);
}

Value* Graph::find_value(Text name) const {
  for (const Graph* graph = this; graph != nullptr;
       graph = graph->parent_ != nullptr ? &graph->parent_->graph() : nullptr)
    for (Value* value : graph->owned_)
      if (value->name_ == name && !value->is_undefined()) return value;
  return nullptr;
}

Node* Graph::find_node(Text name) const {
  for (Node* node : nodes())
    if (node->name() == name) return node;
  return nullptr;
}

bool Graph::is_sorted() const {
  std::vector<bool> seen(storage_->id_count());
  // Captured values count as inputs of the node that holds the subgraph.
  auto ready = [&](const Value* value) {
    return value == nullptr || value->producer_ == nullptr || value->graph_ != this ||
           seen[value->producer_->id()];
  };
  auto all_ready = [&](auto&& self, const Node& node) -> bool {
    for (const Value* value : node.inputs())
      if (!ready(value)) return false;
    for (const Attribute& attribute : node.attributes()) {
      const Graph* inner = attribute.graph();
      if (inner == nullptr) continue;
      for (const Node* deeper : inner->nodes())
        if (!self(self, *deeper)) return false;
      for (const GraphOutput& output : inner->outputs())
        if (!ready(output.value)) return false;
    }
    return true;
  };
  for (const Node* node : nodes()) {
    if (!all_ready(all_ready, *node)) return false;
    seen[node->id()] = true;
  }
  return true;
}

bool Graph::sort() {
  if (is_sorted()) return true;
  // Kahn's algorithm with a queue in file order. A subgraph's captures count as inputs of its node.
  std::vector<Node*> order;
  std::unordered_map<const Node*, size_t> position, missing;
  std::vector<Node*> all;
  for (Node* node : nodes()) {
    position[node] = all.size();
    all.push_back(node);
  }
  std::vector<std::vector<Node*>> successors(all.size());
  auto depend = [&](Node* user, const Value* value) {
    if (value == nullptr || value->producer_ == nullptr) return;
    auto found = position.find(value->producer_);
    if (found == position.end()) return;
    successors[found->second].push_back(user);
    ++missing[user];
  };
  auto collect = [&](auto&& self, Node* user, Node* node) -> void {
    for (Value* value : node->inputs()) depend(user, value);
    for (Attribute& attribute : node->attributes())
      if (Graph* inner = attribute.graph()) {
        for (Node* deeper : inner->nodes()) self(self, user, deeper);
        for (const GraphOutput& output : inner->outputs()) depend(user, output.value);
      }
  };
  for (Node* node : all) collect(collect, node, node);
  std::vector<size_t> heap;  // smallest original position first keeps the order stable
  for (size_t i = 0; i < all.size(); ++i)
    if (missing[all[i]] == 0) heap.push_back(i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const size_t at = heap.back();
    heap.pop_back();
    order.push_back(all[at]);
    for (Node* user : successors[at])
      if (--missing[user] == 0) {
        heap.push_back(position[user]);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
      }
  }
  if (order.size() != all.size()) return false;
  first_ = last_ = nullptr;
  node_count_ = 0;
  for (Node* node : order) link(node, nullptr);
  return true;
}

}  // namespace tombolo
