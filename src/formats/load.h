#pragma once

// Opening and saving models of any format: what every face uses.

#include "formats/format.h"

namespace tombolo {

/// Opens the model at `path` (a file, a folder, or "-" for standard input), whatever its format.
Result<std::unique_ptr<Model>> load_model(const std::string& path, const LoadOptions& options = {});
/// The same for a file whose bytes are at hand; what lies beside it is looked for beside `path`.
Result<std::unique_ptr<Model>> load_source(const Source& source, const LoadOptions& options = {});

/// Writes the model; the format is `options.to`, or the one of the path's extension, or ONNX.
/// The file appears whole or not at all.
Status save_model(const Model& model, const std::string& path, const ExportOptions& options = {});

/// The name of the format of `path`, found by content.
Result<std::string> format_of(const std::string& path);

/// The model file among the files of `folder` named model.*, the one that `convert` would take
/// (weights beside it are found from it); empty when there is none.
std::string find_model_file(const std::string& folder);

}  // namespace tombolo
