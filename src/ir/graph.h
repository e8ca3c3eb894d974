#pragma once

// Graph, Node, Value: the graph in memory.
//
// Values, not names: a node refers to Values; a Value knows its producer and its uses; names are
// labels. A graph owns its nodes (in file order) and its values. Edits keep uses valid; iteration
// survives the insertion and removal of nodes. An invalid graph (unknown names, duplicates, wrong
// order) is representable, so that it can be reported, printed and written back as it was read.

#include <cstdint>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

#include "ir/attribute.h"
#include "ir/inline_vector.h"
#include "ir/storage.h"
#include "ir/type.h"

namespace tombolo {

class Graph;
class Node;
class Value;

struct Use {
  Node* node;
  uint32_t index;  ///< which input of the node
  friend bool operator==(const Use&, const Use&) = default;
};

/// What a ValueInfoProto says beside the name.
struct ValueInfo {
  Text name;  ///< only where it differs from the value's (see GraphOutput)
  const Type* type = nullptr;
  Text doc;
  std::vector<StringEntry> metadata;
  Text unknown;
};

/// One value of the graph: a graph input, an initialiser, an output of a node, or (in an invalid
/// model) a name that nothing defines.
class Value {
 public:
  Text name() const { return name_; }
  void set_name(Text name);            ///< copied into the storage
  uint32_t id() const { return id_; }  ///< dense, unique in the model: index of side tables
  Graph& graph() const { return *graph_; }

  Node* producer() const { return producer_; }
  uint32_t producer_index() const { return index_; }
  std::span<const Use> uses() const { return uses_.span(); }
  /// How many times the value stands among graph outputs (of its own graph, or of a subgraph).
  uint32_t output_uses() const { return output_uses_; }
  bool has_uses() const { return !uses_.empty() || output_uses_ != 0; }

  bool is_input() const { return is_input_; }
  bool is_initializer() const { return initializer_ != nullptr || sparse_ != nullptr; }
  bool is_undefined() const { return producer_ == nullptr && !is_input_ && !is_initializer(); }

  const Type* type() const { return type_; }  ///< declared or inferred; null when unknown
  void set_type(const Type* type) { type_ = type; }
  void set_type(Type type);  ///< interned in the storage

  /// Dense initialiser, or null. An input that has one may be overridden by the caller.
  const Constant* initializer() const { return initializer_.get(); }
  Constant* initializer() { return initializer_.get(); }
  const SparseConstant* sparse_initializer() const { return sparse_.get(); }

  /// doc string, metadata and unknown fields of its ValueInfoProto; null when there are none.
  const ValueInfo* info() const { return info_.get(); }
  ValueInfo& ensure_info() {
    if (!info_) info_ = std::make_unique<ValueInfo>();
    return *info_;
  }

  /// Makes every use (node inputs and graph outputs) refer to `other` instead.
  void replace_all_uses_with(Value& other);

 private:
  friend class Graph;
  friend class Node;
  Text name_;
  Graph* graph_ = nullptr;
  Node* producer_ = nullptr;
  uint32_t index_ = 0;
  uint32_t id_ = 0;
  const Type* type_ = nullptr;
  InlineVector<Use, 1> uses_;
  std::unique_ptr<Constant> initializer_;
  std::unique_ptr<SparseConstant> sparse_;
  std::unique_ptr<ValueInfo> info_;
  uint32_t output_uses_ = 0;
  bool is_input_ = false;
};

/// NodeDeviceConfigurationProto and its parts (IR 11).
struct ShardedDim {
  struct Simple {
    Dim dim;
    bool has_num_shards = false;
    int64_t num_shards = 0;
    Text unknown;
  };
  bool has_axis = false;
  int64_t axis = 0;
  std::vector<Simple> simple;
  Text unknown;
};
struct ShardingSpec {
  struct Group {
    bool has_key = false;
    int64_t key = 0;
    std::vector<int64_t> values;
    Text unknown;
  };
  Text tensor_name;
  std::vector<int64_t> devices;
  std::vector<Group> groups;
  std::vector<ShardedDim> dims;
  Text unknown;
};
struct NodeDeviceConfiguration {
  Text configuration_id;
  std::vector<ShardingSpec> sharding;
  bool has_pipeline_stage = false;
  int32_t pipeline_stage = 0;
  Text unknown;
};

class Node {
 public:
  struct Extra {
    Text overload;
    Text doc;
    std::vector<StringEntry> metadata;
    std::vector<NodeDeviceConfiguration> devices;
    Text unknown;
  };

  Text op_type() const { return op_type_; }
  void set_op_type(Text op_type);
  Text domain() const { return domain_; }  ///< as in the file: "" and "ai.onnx" are the same
  void set_domain(Text domain);
  Text overload() const { return extra_ ? extra_->overload : Text(); }
  Text name() const { return name_; }
  void set_name(Text name);
  uint32_t id() const { return id_; }
  Graph& graph() const { return *graph_; }
  const Extra* extra() const { return extra_.get(); }
  Extra& ensure_extra() {
    if (!extra_) extra_ = std::make_unique<Extra>();
    return *extra_;
  }

  /// The operator-set version under which the node is read: 0 means the model's (or function's)
  /// import. Set by version conversion on a node that the newest set cannot express.
  int opset_override() const { return opset_override_; }
  void set_opset_override(int version) { opset_override_ = version; }

  /// Inputs; null stands for an absent optional input.
  std::span<Value* const> inputs() const { return inputs_.span(); }
  Value* input(size_t index) const { return index < inputs_.size() ? inputs_[index] : nullptr; }
  void set_input(uint32_t index, Value* value);  ///< grows the list with absent inputs if needed
  void add_input(Value* value);
  void insert_input(uint32_t index, Value* value);
  void remove_input(uint32_t index);

  /// Outputs; null stands for an output that is not wanted (empty name).
  std::span<Value* const> outputs() const { return outputs_.span(); }
  Value* output(size_t index) const { return index < outputs_.size() ? outputs_[index] : nullptr; }
  Value* add_output(Text name);  ///< a new value, named `name` (copied)
  void add_absent_output();
  void remove_output(uint32_t index);  ///< the value must have no uses

  const std::vector<Attribute>& attributes() const { return attributes_; }
  std::vector<Attribute>& attributes() { return attributes_; }
  const Attribute* attribute(Text name) const;
  Attribute* attribute(Text name);
  void remove_attribute(Text name);
  /// Adds or replaces.
  Attribute& set_attribute(Attribute attribute);
  Attribute& set_int(Text name, int64_t value);
  Attribute& set_float(Text name, float value);
  Attribute& set_string(Text name, Text value);
  Attribute& set_ints(Text name, std::span<const int64_t> values);
  Attribute& set_floats(Text name, std::span<const float> values);
  Attribute& set_tensor(Text name, const Tensor& tensor);
  /// A new empty subgraph under the attribute `name`.
  Graph& set_graph(Text name);

  Node* next() const;  ///< the next live node in the graph's order, or null
  Node* previous() const;

 private:
  friend class Graph;
  friend class Value;
  void add_use(Value* value, uint32_t index);
  void drop_use(Value* value, uint32_t index);

  Text op_type_, domain_, name_;
  Graph* graph_ = nullptr;
  Node* next_ = nullptr;
  Node* previous_ = nullptr;
  InlineVector<Value*, 2> inputs_;
  InlineVector<Value*, 1> outputs_;
  std::vector<Attribute> attributes_;
  std::unique_ptr<Extra> extra_;
  uint32_t id_ = 0;
  int16_t opset_override_ = 0;
  bool erased_ = false;
};

/// Forward iteration over the nodes of a graph. Erasing any node, and inserting nodes, is safe.
class NodeIterator {
 public:
  using value_type = Node*;
  using difference_type = std::ptrdiff_t;
  explicit NodeIterator(Node* node = nullptr) : node_(node) {}
  Node* operator*() const { return node_; }
  NodeIterator& operator++() {
    node_ = node_->next();
    return *this;
  }
  friend bool operator==(NodeIterator, NodeIterator) = default;

 private:
  Node* node_;
};
struct NodeRange {
  Node* first;
  NodeIterator begin() const { return NodeIterator(first); }
  NodeIterator end() const { return NodeIterator(); }
};

/// One entry of GraphProto.output. `declared` holds what the entry says where that differs from
/// what the value itself says (an outer value named as a subgraph's output, a second entry, a
/// conflict).
struct GraphOutput {
  Value* value = nullptr;
  std::unique_ptr<ValueInfo> declared;
};

struct QuantizationAnnotation {
  Text tensor_name;
  std::vector<StringEntry> parameters;
  Text unknown;
};

class Graph {
 public:
  struct Extra {
    Text doc;
    std::vector<QuantizationAnnotation> quantization;
    std::vector<StringEntry> metadata;
    Text unknown;
  };

  /// `parent` is the node that holds this graph in an attribute, null for a main graph or function.
  explicit Graph(StoragePtr storage, Node* parent = nullptr);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Storage& storage() const { return *storage_; }
  const StoragePtr& storage_ptr() const { return storage_; }
  Node* parent_node() const { return parent_; }
  void set_parent_node(Node* node) { parent_ = node; }

  Text name;
  std::unique_ptr<Extra> extra;
  Extra& ensure_extra() {
    if (!extra) extra = std::make_unique<Extra>();
    return *extra;
  }

  // Nodes, in file order.
  NodeRange nodes() const { return {first_}; }
  size_t node_count() const { return node_count_; }
  Node* first_node() const { return first_; }
  Node* last_node() const { return last_; }
  /// A new node at the end, or before `before`. Strings are copied.
  Node* add_node(Text op_type, Text domain = {}, Node* before = nullptr);
  /// As add_node, with strings that already live as long as the storage (for readers).
  Node* add_node_view(Text op_type, Text domain, Text name);
  /// Removes a node whose outputs have no uses left. Its memory stays until the graph dies, so that
  /// a running iteration stays valid.
  void erase(Node* node);
  /// Moves `node` (of this graph) before `before`, or to the end when null.
  void move(Node* node, Node* before);

  // Values.
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  std::vector<GraphOutput>& outputs() { return outputs_; }  ///< to change `declared` only
  const std::vector<Value*>& initializers() const { return initializers_; }  ///< dense
  const std::vector<Value*>& sparse_initializers() const { return sparse_initializers_; }
  /// Values that have an entry in value_info, in file order.
  const std::vector<Value*>& value_infos() const { return value_infos_; }

  Value* add_input(Text name, const Type* type = nullptr);
  void remove_input(
      Value* value);  ///< keeps it as an initialiser if it is one, else it must be unused
  /// An initialiser: a new value, or (same name as a given input) data for that input.
  Value* add_initializer(Constant constant);
  Value* add_initializer(Text name, const Tensor& tensor);
  Value* add_sparse_initializer(SparseConstant constant);
  /// Gives `value` (e.g. an input, or one without data) this initialiser.
  void set_initializer(Value* value, Constant constant);
  void remove_initializer(Value* value);  ///< must be unused unless it is also an input
  void add_output(Value* value);
  void set_output(size_t index, Value* value);
  void remove_output(size_t index);
  void add_value_info(Value* value);
  void clear_value_infos() { value_infos_.clear(); }
  /// A value that nothing defines yet (readers; a dangling name of an invalid model).
  Value* new_value(Text name);
  /// As new_value, with a name that already lives as long as the storage.
  Value* new_value_view(Text name);
  /// Makes the undefined value `value` an output of `node` (readers, for forward references).
  void define_output(Node* node, Value* value);
  /// Makes the undefined value `value` a graph input.
  void define_input(Value* value);
  void define_initializer(Value* value, std::unique_ptr<Constant> constant);
  void define_sparse_initializer(Value* value, std::unique_ptr<SparseConstant> constant);

  /// A name not used by any value in this graph, its parents or its subgraphs, near `hint`.
  Text unique_name(Text hint);
  /// The value of that name visible here: in this graph, else in the graphs around it. Linear time:
  /// for tools and tests; passes hold Values. Null when there is none.
  Value* find_value(Text name) const;
  Node* find_node(Text name) const;

  /// True when producers come before their users.
  bool is_sorted() const;
  /// Puts nodes into an order in which producers come first, stable otherwise. False when there is
  /// a cycle (the order is unchanged then).
  bool sort();

 private:
  friend class Node;
  friend class Value;
  void link(Node* node, Node* before);
  void unlink(Node* node);
  Value* make_value(Text name);

  StoragePtr storage_;
  Node* parent_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t node_count_ = 0;
  std::vector<Value*> inputs_, initializers_, sparse_initializers_, value_infos_;
  std::vector<GraphOutput> outputs_;
  std::vector<Value*> owned_;     // every value made here; deleted with the graph
  std::vector<Node*> graveyard_;  // erased nodes
};

}  // namespace tombolo
