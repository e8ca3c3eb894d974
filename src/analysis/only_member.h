#pragma once

#include "ops/infer_context.h"
#include "ops/type_sets.h"

namespace tombolo {

/// The one type that a set allows, if it is one (fixed types such as "tensor(int64)").
InferType only_member(const TypeSet& set);

}  // namespace tombolo
