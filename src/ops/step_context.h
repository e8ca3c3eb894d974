#pragma once

// What a version step sees: one node of version `from` that shall become version `to`.
// A step is `Status step_xxx(StepContext& step)`. It either rewrites the node (and may put nodes
// of version `to` around it: they walk on by their own steps), or changes nothing and returns
// `step.cannot(why)`: the node then keeps its version.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace tombolo {

/// What the engine knows of a value without full shape inference.
struct ValueFacts {
  DType dtype = DType::kUndefined;  ///< kUndefined: not known
  std::optional<size_t> rank;
};

/// What the engine lends to steps.
class StepHost {
 public:
  virtual ~StepHost() = default;
  virtual ValueFacts facts(const Value& value) = 0;
  /// A name that no value of the model has, near `hint`. Constant time.
  virtual Text unique_name(Graph& graph, std::string_view hint) = 0;
  /// An initialiser of `graph`, or a Constant node before `before` where there can be none (the
  /// body of a function).
  virtual Value* constant(Graph& graph, Node* before, const Tensor& tensor,
                          std::string_view hint) = 0;
  /// Notes a node that a step has made, of operator set `version`.
  virtual void created(Node* node, int version) = 0;
  /// Length of an axis, and elements of a small integer tensor, where inference has found them.
  virtual std::optional<int64_t> dim(const Value&, size_t) { return std::nullopt; }
  virtual std::optional<std::vector<int64_t>> known_ints(const Value&) { return std::nullopt; }
  /// Whether two lengths are provably equal, as expressions too.
  virtual bool same_dim(const Value&, size_t, const Value&, size_t) { return false; }
  /// Puts `nodes` (ONNX text of operator set `opset`, over the formal names of the operator's
  /// version `from`) in the place of `node`, which is gone then. Steps down only.
  virtual Status expand(Node& node, int from, int opset, std::string_view nodes);
};

struct StepContext {
  Node& node;
  int from, to;  ///< versions of the operator
  int target;    ///< the operator set at which the walk will end
  StepHost& host;

  Graph& graph() const { return node.graph(); }
  /// The node keeps version `from`; `why` is shown to the user.
  Error cannot(std::string why) const { return unsupported(std::move(why)); }

  // Attributes. An attribute of another type than the one asked for reads as absent.
  bool has(Text name) const { return node.attribute(name) != nullptr; }
  int64_t get_int(Text name, int64_t fallback) const;
  float get_float(Text name, float fallback) const;
  Text get_string(Text name, Text fallback) const;
  std::optional<std::vector<int64_t>> get_ints(Text name) const;
  std::optional<std::vector<float>> get_floats(Text name) const;
  /// Gives the attribute the name `to_name`, if the node has it.
  void rename_attribute(Text name, Text to_name);

  // Inputs.
  bool has_input(size_t index) const { return node.input(index) != nullptr; }
  DType dtype(size_t input) const;
  std::optional<size_t> rank(size_t input) const;
  /// Length of an axis where it is declared as a number.
  std::optional<int64_t> dim(size_t input, size_t axis) const;
  /// The value of an input that is an initialiser (not one that callers may override) or the
  /// output of a Constant node. Large ones read as unknown: steps ask for lists, not weights.
  std::optional<Tensor> constant_value(size_t input) const;
  std::optional<std::vector<int64_t>> constant_ints(size_t input) const;

  /// Lengths of all axes, where each is known as a number.
  std::optional<std::vector<int64_t>> dims(size_t input) const;

  // Outputs.
  /// True when somebody reads the output.
  bool output_used(size_t index) const {
    return node.output(index) != nullptr && node.output(index)->has_uses();
  }

  // Edits.
  Value* constant(const Tensor& tensor, std::string_view hint);
  Value* ints(std::span<const int64_t> values, std::string_view hint);  ///< int64, rank 1
  Value* ints(std::initializer_list<int64_t> values, std::string_view hint);
  Value* scalar(int64_t value, std::string_view hint);  ///< int64, rank 0
  /// A rank-0 constant of element type `dtype`.
  Result<Value*> scalar(DType dtype, double value, std::string_view hint);
  /// Turns the list attribute `name` into constant input `index`. Nothing when it is absent.
  void ints_to_input(Text name, uint32_t index);
  /// A new node before this one, with one new output, named after `hint`.
  Node& before(Text op_type, std::initializer_list<Value*> inputs, std::string_view hint);
  /// A new node behind this one, that reads output `index` of this node as its first input and
  /// takes over the value that stood there: its name, uses and place in the graph's interface.
  Node& after(Text op_type, uint32_t index = 0);
  /// A new node right behind `place` (this node when null), with `inputs` and no output yet.
  Node& add(Text op_type, std::initializer_list<Value*> inputs, Node* place = nullptr);

  // Steps down.
  /// Writes `nodes`, ONNX text over the formal names of inputs, outputs and attributes (`@axis`),
  /// in operator set `opset`, in the place of the node: nothing of the node may be touched
  /// afterwards.
  Status replace(int opset, std::string_view nodes) const {
    return host.expand(node, from, opset, nodes);
  }
  /// Turns constant input `index` into the list attribute `name`. Error when it is not constant.
  Status ints_to_attribute(uint32_t index, Text name);
};

}  // namespace tombolo
