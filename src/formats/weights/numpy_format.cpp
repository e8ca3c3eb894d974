// .npz and .npy as checkpoints.

#include "formats/common/npy.h"
#include "formats/common/zip.h"
#include "formats/weights/safetensors.h"

namespace tombolo {

int probe_numpy(const Source& source) {
  if (source.is_folder) return 0;
  if (source.file.text().starts_with("\x93NUMPY")) return 3;
  if (!ZipArchive::probe(source.file.bytes())) return 0;
  if (source.path.ends_with(".npz")) return 3;
  auto archive = ZipArchive::open(source.file.bytes(), source.file.owner());
  if (!archive || archive->members().empty()) return 0;
  for (const ZipArchive::Member& member : archive->members())
    if (!member.name.ends_with(".npy") && member.name != "__dtypes__.json") return 0;
  return 3;
}

Result<std::unique_ptr<Model>> load_numpy(const Source& source, const LoadOptions&) {
  auto storage = std::make_shared<Storage>();
  storage->keep(source.file);
  std::vector<Weight> weights;
  if (source.file.text().starts_with("\x93NUMPY")) {
    TRY(Tensor tensor, read_npy(source.file.text(), source.file.owner()));
    weights.push_back(Weight::of("", std::move(tensor)));
  } else {
    TRY(std::vector<NamedTensor> tensors, read_npz(source.file));
    for (NamedTensor& named : tensors)
      weights.push_back(Weight::of(std::move(named.name), std::move(named.tensor)));
  }
  return weights_model(std::move(weights), std::move(storage), "numpy");
}

Status save_npz(const Model& model, const std::string& path, const ExportOptions&) {
  TRY(std::vector<Weight> weights, weights_of(model, "NumPy"));
  std::vector<NamedTensor> tensors;
  for (Weight& weight : weights)
    tensors.push_back({std::move(weight.name), std::move(weight.tensor)});
  TRY(OutputFile out, OutputFile::create(path));
  CHECK_OK(write_npz(tensors, out));
  return out.commit();
}

}  // namespace tombolo
