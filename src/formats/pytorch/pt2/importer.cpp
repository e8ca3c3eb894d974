#include "formats/pytorch/pt2/importer.h"

#include <unordered_set>

#include "formats/pytorch/checkpoint.h"
#include "formats/pytorch/pt2/program.h"
#include "passes/pipeline.h"

namespace tombolo::pytorch {
namespace {

/// The tensors of the example inputs, in the order of the user's own inputs.
Status read_sample(const Pt2Archive& archive, const Model& model,
                   std::vector<NamedTensor>& sample) {
  const std::optional<Blob> blob = archive.sample_inputs();
  if (!blob) return ok();
  auto stored = torch::read_checkpoint(*blob, true);
  if (!stored) return std::move(stored).error().at("example inputs");
  size_t next = 0;
  for (const Value* input : model.graph->inputs()) {
    if (input->is_initializer() || next >= stored->size()) continue;  // state keeps its value
    Tensor tensor = (*stored)[next++].tensor;
    if (is_complex(tensor.dtype())) {  // pairs of reals
      std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
      dims.push_back(2);
      const DType part = tensor.dtype() == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
      auto owner = std::make_shared<Tensor>(tensor);
      tensor = Tensor::view(part, dims, owner->bytes(), owner);
    }
    sample.push_back({std::string(input->name()), std::move(tensor)});
  }
  return ok();
}

/// What was made in the place of a node has its name: the later ones get the name of their value
/// beside it.
void name_apart(Model& model) {
  std::unordered_set<std::string> seen;
  for_each_graph(*model.graph, [&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->name().empty()) continue;
      std::string name(node->name());
      if (!seen.insert(name).second) {
        if (node->output(0) != nullptr) name += "/" + std::string(node->output(0)->name());
        const std::string stem = name;
        for (int k = 1; !seen.insert(name).second; ++k) name = stem + "_" + std::to_string(k);
        node->set_name(name);
      }
    }
  });
}

}  // namespace

Result<std::unique_ptr<Model>> import_pt2(Blob file, const LoadOptions& options) {
  TRY(const Pt2Archive archive, Pt2Archive::open(std::move(file)));
  auto model = std::make_unique<Model>(Model::create(kImportOpset));
  model->producer_name = "tombolo";
  model->graph->name = "main_graph";
  model->metadata.push_back({"source", "torch.export"});
  const Json root = archive.program();
  if (const Json version = root["torch_version"]; version.is_string())
    model->metadata.push_back({"torch_version", model->storage().copy(version.string_or(""))});
  Program program(*model, archive, options.custom_op_domain);
  CHECK_OK(program.run());
  // What the source spells out, or got decomposed, is said by the operators that ONNX has.
  OptimiseOptions raise;
  raise.only = {"unflatten-matmul", "recognise-activations", "recognise-norms",
                "recognise-rotary", "recognise-attention",   "merge-equal-nodes",
                "remove-dead-code"};
  CHECK_OK(optimise(*model, raise));
  name_apart(*model);
  if (options.stored_sample != nullptr)
    CHECK_OK(read_sample(archive, *model, *options.stored_sample));
  return model;
}

}  // namespace tombolo::pytorch
