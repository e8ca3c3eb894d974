#pragma once

#include <vector>

#include "runtime/session.h"

namespace tombolo {

/// The outputs of a run as plain tensors: sequences as NAME.0, NAME.1, ..., maps as NAME.keys and
/// NAME.values (or NAME.values.0, ... where those are no scalars), sparse tensors as NAME.values
/// and NAME.indices; absent optionals left out.
std::vector<NamedTensor> flatten_outputs(const std::vector<SessionPort>& ports,
                                         const std::vector<RunValue>& values);

}  // namespace tombolo
