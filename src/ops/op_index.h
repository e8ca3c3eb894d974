#pragma once

// The list that cmake/index.cmake makes of the OPERATOR lines under src/ops.

#include <span>

#include "ops/schema.h"

namespace tombolo {

extern const std::span<const OpDecl* const> kOperatorIndex;  ///< sorted by symbol

}  // namespace tombolo
