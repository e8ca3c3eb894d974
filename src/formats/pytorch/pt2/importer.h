#pragma once

// Imports exported programs (.pt2).

#include <memory>
#include <string>

#include "base/result.h"
#include "formats/common/zip.h"
#include "formats/format.h"
#include "ir/model.h"

namespace tombolo::pytorch {

Result<std::unique_ptr<Model>> import_pt2(Blob file, const LoadOptions& options);

}  // namespace tombolo::pytorch
