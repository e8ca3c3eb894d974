#pragma once

#include "formats/format.h"

namespace tombolo {

int probe_pt2(const Source& source);
Result<std::unique_ptr<Model>> load_pt2_format(const Source& source, const LoadOptions& options);

}  // namespace tombolo
