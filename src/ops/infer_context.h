#pragma once

// What a shape inference function sees: `Status infer_xxx(InferContext& context)`. It sets as much
// of the outputs' types as it can prove; what it cannot know stays unknown. An error means that the
// node is invalid (the engine reports it and goes on).

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbolic_dim.h"
#include "ir/tensor.h"
#include "ops/attributes.h"

namespace tombolo {

/// The type of a value while it is being inferred.
struct InferType {
  Type::Kind kind = Type::Kind::kNone;       ///< kNone: nothing known
  DType elem = DType::kUndefined;            ///< tensor, sparse tensor; kUndefined: unknown
  std::optional<SymShape> shape;             ///< nullopt: rank unknown
  std::shared_ptr<const InferType> element;  ///< sequence, optional; map value
  DType key = DType::kUndefined;             ///< map

  static InferType tensor(DType elem) { return {Type::Kind::kTensor, elem, {}, {}, {}}; }
  static InferType tensor(DType elem, SymShape shape) {
    return {Type::Kind::kTensor, elem, std::move(shape), {}, {}};
  }
  static InferType sequence(InferType element) {
    return {Type::Kind::kSequence,
            DType::kUndefined,
            {},
            std::make_shared<const InferType>(std::move(element)),
            {}};
  }
  static InferType optional(InferType element) {
    return {Type::Kind::kOptional,
            DType::kUndefined,
            {},
            std::make_shared<const InferType>(std::move(element)),
            {}};
  }
  bool is_tensor() const { return kind == Type::Kind::kTensor; }
  bool has_shape() const { return shape.has_value(); }
};

/// What the engine lends to inference functions.
class InferHost {
 public:
  virtual ~InferHost() = default;
  /// Infers a subgraph whose inputs have these types; returns its outputs' types.
  virtual Result<std::vector<InferType>> infer_graph(const Graph& graph,
                                                     std::span<const InferType> inputs) = 0;
  /// A new symbol that equals nothing else, named near `hint`: for data-dependent sizes.
  virtual SymDim fresh_symbol(std::string_view hint) = 0;
};

struct InferContext {
  const Node& node;
  int opset;  ///< version of the node's domain under which it is read
  AttributeReader attributes;
  InferHost& host;
  std::span<const InferType* const> inputs;       ///< null where absent
  std::span<const Tensor* const> constants;       ///< per input: its value when constant, else null
  std::span<const SymShape* const> input_values;  ///< per input: elements of a known small integer
                                                  ///< tensor (rank 0 or 1), symbolic; else null
  std::span<InferType> outputs;
  std::span<std::optional<SymShape>> output_values;  ///< to set for shape-like outputs

  size_t input_count() const { return inputs.size(); }
  bool has_input(size_t index) const { return index < inputs.size() && inputs[index] != nullptr; }
  /// Input type; a static "nothing known" when absent.
  const InferType& input(size_t index) const;
  DType elem(size_t index) const { return input(index).elem; }
  /// Shape of a tensor input, null when absent or of unknown rank.
  const SymShape* shape(size_t index) const;
  /// The constant value of an input, null when unknown.
  const Tensor* constant(size_t index) const {
    return index < constants.size() ? constants[index] : nullptr;
  }
  /// Elements of a small integer tensor input (shape, axes, ...), from a constant or propagated.
  const SymShape* ints(size_t index) const {
    return index < input_values.size() ? input_values[index] : nullptr;
  }
  /// As ints(), only when every element is a number.
  std::optional<std::vector<int64_t>> constant_ints(size_t index) const;

  bool wants_output(size_t index) const {
    return index < outputs.size() && node.output(index) != nullptr;
  }
  void set_output(size_t index, InferType type) {
    if (index < outputs.size()) outputs[index] = std::move(type);
  }
  void set_tensor(size_t index, DType elem) { set_output(index, InferType::tensor(elem)); }
  void set_tensor(size_t index, DType elem, SymShape shape) {
    set_output(index, InferType::tensor(elem, std::move(shape)));
  }
  /// Output `index` has the type and shape of input `from`.
  void same_as_input(size_t index, size_t from);
  void set_value(size_t index, SymShape elements) {
    if (index < output_values.size()) output_values[index] = std::move(elements);
  }
  Error error(std::string message) const { return {ErrorKind::kParse, std::move(message), {}, {}}; }
};

/// Numpy broadcasting of two symbolic shapes. 1 gives way; an unknown dim against a number above 1
/// is that number; two expressions that are not provably equal give unknown. Error when two numbers
/// disagree.
Result<SymShape> broadcast(const SymShape& a, const SymShape& b);

}  // namespace tombolo
