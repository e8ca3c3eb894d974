#include "formats/weights/weights_model.h"

#include <unordered_set>

#include "formats/common/graph_builder.h"

namespace tombolo {

Weight Weight::of(std::string name, Tensor tensor) {
  Weight weight;
  weight.name = std::move(name);
  weight.dtype = tensor.dtype();
  weight.dims.assign(tensor.dims().span().begin(), tensor.dims().span().end());
  weight.tensor = std::move(tensor);
  return weight;
}

Result<std::unique_ptr<Model>> weights_model(std::vector<Weight> weights, StoragePtr storage,
                                             std::string_view producer,
                                             const WeightMetadata& metadata) {
  auto model = std::make_unique<Model>(std::move(storage));
  model->has_ir_version = true;
  model->ir_version = kNewestIrVersion;
  model->set_opset("", kImportOpset);
  model->producer_name = model->storage().copy(producer);
  model->graph = std::make_unique<Graph>(model->storage_ptr());
  model->graph->name = model->storage().copy("weights");
  for (const auto& [key, value] : metadata)
    model->metadata.push_back({model->storage().copy(key), model->storage().copy(value)});

  std::unordered_set<std::string> names;
  for (Weight& weight : weights) {
    std::string name = weight.name;
    for (size_t suffix = 1; !names.insert(name).second; ++suffix)
      name = weight.name + "_" + std::to_string(suffix);
    const Text kept = model->storage().copy(name);
    Constant constant;
    if (weight.tensor.dtype() != DType::kUndefined) {
      constant = Constant::from_tensor(weight.tensor, kept, model->storage());
    } else {
      constant.name = kept;
      constant.data_type = static_cast<int32_t>(weight.dtype);
      constant.has_data_type = true;
      for (const int64_t dim : weight.dims) constant.dims.push_back(dim);
    }
    Value* value = model->graph->add_initializer(std::move(constant));
    std::vector<Dim> dims;
    for (const int64_t dim : weight.dims) dims.push_back(Dim::of(dim));
    value->set_type(Type::tensor(weight.dtype, std::move(dims)));
    model->graph->add_output(value);
    weight.tensor = Tensor();
  }
  return model;
}

bool is_weights_only(const Model& model) {
  return model.graph && model.graph->node_count() == 0 && model.graph->inputs().empty() &&
         model.functions.empty() && model.graph->sparse_initializers().empty();
}

Result<std::vector<Weight>> weights_of(const Model& model, std::string_view format) {
  if (!is_weights_only(model))
    return unsupported("a " + std::string(format) +
                       " file holds tensors only: the model's graph would be lost")
        .with_help("write the model as .onnx");
  std::vector<Weight> weights;
  for (const Value* value : model.graph->initializers()) {
    auto tensor = value->initializer()->value(model.storage_ptr());
    if (!tensor.ok())
      return std::move(tensor).error().at("tensor \"" + std::string(value->name()) + "\"");
    weights.push_back(Weight::of(std::string(value->name()), *std::move(tensor)));
  }
  return weights;
}

}  // namespace tombolo
