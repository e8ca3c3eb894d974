#pragma once

// ONNX itself in its three spellings, as rows of the format table.

#include "formats/format.h"

namespace tombolo {

int probe_onnx(const Source& source);
int probe_text(const Source& source);
int probe_json(const Source& source);
Result<std::unique_ptr<Model>> load_onnx_format(const Source& source, const LoadOptions& options);
Result<std::unique_ptr<Model>> load_text_format(const Source& source, const LoadOptions& options);
Result<std::unique_ptr<Model>> load_json_format(const Source& source, const LoadOptions& options);
Status save_onnx_format(const Model& model, const std::string& path, const ExportOptions& options);
Status save_text_format(const Model& model, const std::string& path, const ExportOptions& options);
Status save_json_format(const Model& model, const std::string& path, const ExportOptions& options);

}  // namespace tombolo
