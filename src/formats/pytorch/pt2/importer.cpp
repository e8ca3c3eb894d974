#include "formats/pytorch/pt2/importer.h"

#include "formats/pytorch/pt2/program.h"

namespace tombolo::pytorch {

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
  return model;
}

}  // namespace tombolo::pytorch
