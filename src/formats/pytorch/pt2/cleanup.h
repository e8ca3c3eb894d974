#pragma once

// What is left after lowering that an expert would not have written: unused nodes and initialisers,
// Identity between values.

#include "base/result.h"
#include "ir/model.h"

namespace tombolo::pytorch {

Status clean_up(Model& model);

}  // namespace tombolo::pytorch
