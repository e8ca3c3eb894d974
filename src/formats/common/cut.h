#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

/// Makes `inputs` and `outputs` (names of values; empty: as they are) the interface of the main
/// graph, in this order, and drops what no output needs any more. A value inside the graph that
/// becomes an input is fed by the caller from then on. Usage errors name values that do not exist
/// and inputs that the outputs still need.
Status cut_graph(Model& model, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs);

}  // namespace tombolo
