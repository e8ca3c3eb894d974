#pragma once

// Hugging Face's safetensors: a little-endian uint64 header size, a JSON header, the tensors'
// bytes. Single files, and folders or index files (*.safetensors.index.json) that name several.

#include "formats/format.h"
#include "formats/weights/weights_model.h"

namespace tombolo {

int probe_safetensors(const Source& source);
Result<std::unique_ptr<Model>> load_safetensors(const Source& source, const LoadOptions& options);
Status save_safetensors(const Model& model, const std::string& path, const ExportOptions& options);

/// The tensors of one file, in the order in which their data lie; `metadata` gets the header's
/// __metadata__.
Result<std::vector<Weight>> read_safetensors(std::span<const std::byte> bytes,
                                             const std::shared_ptr<const void>& owner,
                                             WeightMetadata* metadata = nullptr);

/// NumPy's archives of arrays: .npz and .npy.
int probe_numpy(const Source& source);
Result<std::unique_ptr<Model>> load_numpy(const Source& source, const LoadOptions& options);
Status save_npz(const Model& model, const std::string& path, const ExportOptions& options);

}  // namespace tombolo
