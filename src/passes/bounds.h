#pragma once

#include <optional>

#include "passes/rewriter.h"

namespace tombolo {

/// What a tensor's elements cannot leave; never NaN.
struct Interval {
  double low, high;
};

/// Proves bounds through the nodes that make masks: Where, Cast, arithmetic, data movement. Nothing
/// where no bound is provable, or a step may leave its type's finite range.
std::optional<Interval> bounds_of(const Rewriter& rewriter, const Value* value, int depth = 0);

}  // namespace tombolo
