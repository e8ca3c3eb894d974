#include "runtime/inferred_shapes.h"

namespace tombolo {

InferredShapes::InferredShapes(const Model& model, const std::vector<RunValue>& inputs)
    : graph_(*model.graph) {
  for (size_t i = 0; i < graph_.inputs().size(); ++i) {
    Value* input = graph_.inputs()[i];
    declared_.push_back(input->type());
    if (i >= inputs.size() || !inputs[i].is_tensor()) continue;
    const Tensor& tensor = inputs[i].tensor();
    std::vector<Dim> dims;
    for (int64_t dim : tensor.dims()) dims.push_back(Dim::of(dim));
    input->set_type(Type::tensor(tensor.dtype(), std::move(dims)));
  }
  inference_ = std::make_unique<Inference>(model);
  Diagnostics ignored(0);  // a contradiction shows when the node runs, with its values
  inference_->run(ignored);
}

InferredShapes::~InferredShapes() {
  for (size_t i = 0; i < declared_.size(); ++i) graph_.inputs()[i]->set_type(declared_[i]);
}

std::optional<Dims> InferredShapes::dims(const Value& value) const {
  const InferType* known = type(value);
  if (known == nullptr || !known->is_tensor() || !known->shape) return std::nullopt;
  Dims dims;
  for (const SymDim& dim : *known->shape) {
    if (!dim.is_value()) return std::nullopt;
    dims.push_back(dim.value());
  }
  return dims;
}

}  // namespace tombolo
