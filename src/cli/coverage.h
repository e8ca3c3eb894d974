#pragma once

// `tombolo ops --coverage`: runs every operator, version and type by its recipe.

#include "base/result.h"
#include "cli/command.h"

namespace tombolo::cli {

/// Prints what runs, as Markdown or (--json) as JSON; 1 when something does not run. `wanted`: one
/// operator, or all when empty.
Result<int> print_coverage(Console& console, std::string_view wanted);

}  // namespace tombolo::cli
