#pragma once

// Writes newest-opset ONNX for importers: typed helpers that make one node each, name things after
// the source layer, share equal constants, and know the shape of everything they made.

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ir/model.h"
#include "ir/symbolic_dim.h"
#include "ops/infer_context.h"

namespace tombolo {

/// The operator set that importers write.
inline constexpr int64_t kImportOpset = 28;

/// An attribute to set.
struct Attr {
  using Value = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                             std::vector<std::string>>;
  Text name;
  Value value;
  Attr(Text attr_name, int64_t number) : name(attr_name), value(number) {}
  Attr(Text attr_name, int number) : name(attr_name), value(int64_t{number}) {}
  Attr(Text attr_name, bool flag) : name(attr_name), value(int64_t{flag}) {}
  Attr(Text attr_name, float number) : name(attr_name), value(number) {}
  Attr(Text attr_name, double number) : name(attr_name), value(static_cast<float>(number)) {}
  Attr(Text attr_name, const char* text) : name(attr_name), value(std::string(text)) {}
  Attr(Text attr_name, std::string text) : name(attr_name), value(std::move(text)) {}
  Attr(Text attr_name, std::vector<int64_t> list) : name(attr_name), value(std::move(list)) {}
  Attr(Text attr_name, std::vector<float> list) : name(attr_name), value(std::move(list)) {}
  Attr(Text attr_name, std::vector<std::string> list) : name(attr_name), value(std::move(list)) {}
  // Not inline: their code would stand at every use.
  Attr(const Attr& other);
  Attr(Attr&& other) noexcept;
  Attr& operator=(const Attr& other);
  Attr& operator=(Attr&& other) noexcept;
  ~Attr();
};
using Attrs = std::vector<Attr>;

class GraphBuilder {
 public:
  explicit GraphBuilder(Model& model);

  Model& model() { return model_; }
  /// Where nodes are made: the model's graph, or the subgraph that was entered last.
  Graph& graph() { return inner_.empty() ? *model_.graph : *inner_.back(); }
  /// Nodes go into `inner`, the body of a node in the current graph, until leave(). Constants are
  /// made in the model's graph all the same, where every body sees them.
  void enter(Graph& inner) { inner_.push_back(&inner); }
  void leave() { inner_.pop_back(); }
  size_t depth() const { return inner_.size(); }

  /// Types and small integer values follow from the operators' own inference instead of the short
  /// rules here; nodes whose inputs are small constants become constants.
  void use_operator_inference() { operator_inference_ = true; }
  /// What every node made from now on carries as metadata; the views must outlive the model.
  void set_metadata(std::vector<StringEntry> metadata) { metadata_ = std::move(metadata); }
  const StoragePtr& storage() const { return model_.storage_ptr(); }

  /// The source layer that the next nodes come from: "conv1" names them "conv1/Conv".
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  const std::string& scope() const { return scope_; }

  Value* input(std::string_view name, DType dtype, const SymShape& shape);
  /// A constant with the same content is made once.
  Value* constant(const Tensor& tensor, std::string_view hint = "const");
  /// An initialiser of its own under the name that the source gives it: a weight.
  Value* weight(const Tensor& tensor, std::string_view name);
  Value* ints(std::span<const int64_t> values);  ///< int64, rank 1
  Value* ints(std::initializer_list<int64_t> values) {
    return ints(std::span<const int64_t>(values.begin(), values.size()));
  }
  Value* int_scalar(int64_t value);
  /// A number of a given type, rank 0.
  Value* scalar(double value, DType dtype);

  /// One node with one output whose shape follows from the operator. Null inputs are absent.
  Value* op(Text type, std::initializer_list<Value*> inputs, const Attrs& attrs = {}) {
    return op(type, std::span<Value* const>(inputs.begin(), inputs.size()), attrs);
  }
  Value* op(Text type, std::span<Value* const> inputs, const Attrs& attrs = {});
  /// One node with several outputs.
  std::vector<Value*> op_many(Text type, std::initializer_list<Value*> inputs, size_t outputs,
                              const Attrs& attrs = {});
  /// One node with subgraphs: fill them with enter() and leave(), then call finish().
  Node* begin(Text type, std::span<Value* const> inputs, const Attrs& attrs = {});
  std::vector<Value*> finish(Node* node, size_t outputs);
  /// What the caller knows better than the shape rules.
  void set_type(Value* value, DType dtype, const SymShape& shape);
  /// The same for a sequence of tensors; null where the rank of its elements is not known.
  void set_sequence_type(Value* value, DType dtype, const SymShape* shape);

  // What is used everywhere; each folds away where it changes nothing.
  Value* transpose(Value* x, std::vector<int64_t> perm);
  Value* reshape(Value* x, std::vector<int64_t> shape);  ///< 0 copies, one -1 is inferred
  Value* squeeze(Value* x, std::vector<int64_t> axes);
  Value* unsqueeze(Value* x, std::vector<int64_t> axes);
  Value* slice(Value* x, int64_t axis, int64_t start, int64_t end, int64_t step = 1);
  Value* cast(Value* x, DType dtype);

  bool has_shape(const Value* value) const { return facts_.count(value) != 0; }
  DType dtype(const Value* value) const;
  const SymShape& shape(const Value* value) const;
  int64_t rank(const Value* value) const { return static_cast<int64_t>(shape(value).size()); }
  SymDim dim(const Value* value, int64_t axis) const;  ///< negative counts from the end
  /// The value of a constant made here.
  const Tensor* constant_value(const Value* value) const;
  /// The elements of a small integer tensor (rank 0 or 1) as far as they are known; null when not.
  const SymShape* elements(const Value* value) const;

  /// A name that is legal and not yet taken; values and nodes have separate names.
  std::string fresh_name(const std::string& hint);
  /// Gives a finished value the name that the source gave it.
  void rename(Value* value, std::string_view name);

  /// The first problem met while building (wrong ranks, a rule that does not hold): the source
  /// model contradicts itself.
  const Status& status() const { return status_; }
  void clear_status() { status_ = ok(); }

 private:
  struct Facts {
    DType dtype = DType::kUndefined;
    SymShape shape;
  };
  friend class OperatorInference;
  void infer(const Node& node);
  Node* add_node(Text type, std::span<Value* const> inputs, const Attrs& attrs);
  void add_outputs(Node* node, size_t outputs);

  Model& model_;
  std::string scope_;
  std::unordered_map<const Value*, Facts> facts_;
  std::unordered_map<const Value*, Tensor> constants_;
  std::unordered_map<const Value*, SymShape> elements_;
  std::unordered_map<const Value*, InferType> special_;  // sequences and optionals
  std::vector<Graph*> inner_;
  std::vector<StringEntry> metadata_;
  bool operator_inference_ = false;
  size_t next_symbol_ = 0;
  std::unordered_multimap<size_t, Value*> constant_index_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> next_suffix_;
  Status status_ = ok();
};

/// `value` turned into a declared dimension: number, expression as dim_param, or unknown.
Dim to_dim(const SymDim& value, Storage& storage);

/// The elements of `tensor` with axes permuted: result axis i is source axis perm[i].
Result<Tensor> transposed(const Tensor& tensor, std::span<const int64_t> perm);

}  // namespace tombolo
