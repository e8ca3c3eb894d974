#pragma once

// Keras as a row of the format table.

#include "formats/format.h"

namespace tombolo {

int probe_keras(const Source& source);
Result<std::unique_ptr<Model>> load_keras_format(const Source& source, const LoadOptions& options);

}  // namespace tombolo
