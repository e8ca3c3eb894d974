#pragma once

// A TorchScript archive as a model.

#include "formats/common/zip.h"
#include "formats/format.h"
#include "ir/run_value.h"

namespace tombolo::script {

int probe_torchscript(const Source& source);
Result<std::unique_ptr<Model>> load_torchscript(const Source& source, const LoadOptions& options);

/// The same for bytes at hand. `samples` are example inputs, by name or in order.
Result<std::unique_ptr<Model>> import_torchscript(Blob file, std::vector<NamedTensor> samples,
                                                  const LoadOptions& options);

}  // namespace tombolo::script
