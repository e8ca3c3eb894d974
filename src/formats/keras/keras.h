#pragma once

// Imports Keras models: .keras (version 3 archives), whole-model .h5, config.json or model.json
// with its weights file, and folders that hold an unpacked .keras.

#include <memory>
#include <string>

#include "base/result.h"
#include "formats/common/zip.h"
#include "ir/model.h"

namespace tombolo::keras {

struct Source {
  Blob model;    ///< .keras or .h5 bytes, or the JSON text of the configuration
  Blob weights;  ///< HDF5 bytes when they are in a file of their own; else empty
};

/// True when the bytes are an HDF5 file or archive that may hold a Keras model, or JSON of one.
bool probe_archive(std::span<const std::byte> bytes);  ///< .keras
bool probe_json(std::string_view text);

/// Builds the model. Unsupported layers are reported all at once (ErrorKind::kUnsupported).
Result<std::unique_ptr<Model>> import_model(const Source& source);

/// Where the weights of a JSON file are by habit: x.weights.h5, model.weights.h5, x_weights.h5,
/// x.h5; empty when there is none.
std::string find_weights(const std::string& json_path);

}  // namespace tombolo::keras
