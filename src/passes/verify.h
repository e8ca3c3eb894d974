#pragma once

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

/// What every edit must keep: uses and producers agree, what is read is defined before and visible,
/// names are unique where they must be, the outputs of the main graph have their names. A broken
/// graph is an error that names the place: passes run under it in tests and in debug builds.
Status verify_graph(const Model& model);

}  // namespace tombolo
