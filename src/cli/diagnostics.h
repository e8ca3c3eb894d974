#pragma once

#include <string>

#include "base/diagnostic.h"

namespace tombolo::cli {

/// [{"severity","code","where","message","help"}, ...]
std::string diagnostics_json(const Diagnostics& diagnostics);

}  // namespace tombolo::cli
