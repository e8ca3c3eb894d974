#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "analysis/infer.h"
#include "ir/run_value.h"

namespace tombolo {

/// What shape inference says of a model when its inputs have the types and shapes of these values.
/// Changes the types of the graph's inputs while it lives: one at a time for a model.
class InferredShapes {
 public:
  InferredShapes(const Model& model, const std::vector<RunValue>& inputs);
  ~InferredShapes();
  InferredShapes(const InferredShapes&) = delete;
  InferredShapes& operator=(const InferredShapes&) = delete;

  const InferType* type(const Value& value) const { return inference_->type(value); }
  /// Nothing where the value is no tensor, or a dimension is no number.
  std::optional<Dims> dims(const Value& value) const;

 private:
  const Graph& graph_;
  std::vector<const Type*> declared_;
  std::unique_ptr<Inference> inference_;
};

}  // namespace tombolo
