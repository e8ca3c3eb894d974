#pragma once

// Traced graphs as python/tombolo_trace.py writes them: NAME.trace.json beside
// NAME.trace.safetensors (docs/formats/trace.md).

#include "formats/format.h"

namespace tombolo::pytorch {

int probe_trace(const Source& source);
Result<std::unique_ptr<Model>> load_trace(const Source& source, const LoadOptions& options);

}  // namespace tombolo::pytorch
