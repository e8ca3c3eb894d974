#pragma once

// What the operators' own inference and reference kernels say of a node that a GraphBuilder makes.

#include <optional>

#include "base/result.h"
#include "ir/tensor.h"
#include "ops/infer_context.h"

namespace tombolo {

class GraphBuilder;
class Node;

class OperatorInference : public InferHost {
 public:
  explicit OperatorInference(GraphBuilder& builder) : b_(builder) {}
  /// Sets types and small integer values of the node's outputs in the builder.
  Status infer(const Node& node);

  Result<std::vector<InferType>> infer_graph(const Graph& graph,
                                             std::span<const InferType> inputs) override;
  SymDim fresh_symbol(std::string_view hint) override;

 private:
  InferType type_of(const Value* value) const;
  GraphBuilder& b_;
};

/// The one output of a node (that has none yet) whose inputs are small constants; nothing where it
/// is not computed now.
std::optional<Tensor> fold_builder_node(GraphBuilder& builder, Node& node);

}  // namespace tombolo
