#pragma once

// What the constant inputs of Slice say (specification of Slice-13), but for the ends.

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/rewriter.h"

namespace tombolo {

struct SliceBounds {
  std::vector<int64_t> starts, axes,
      steps;  ///< one for each sliced axis; axes count from the front
};

/// Nothing where they are not known, or not of one length. Axes are as many as written: whether
/// they are below `rank` is for the caller to ask.
inline std::optional<SliceBounds> slice_bounds(const Rewriter& rewriter, const Node& slice,
                                               size_t rank) {
  const auto starts = rewriter.ints(slice.input(1));
  if (!starts) return std::nullopt;
  SliceBounds bounds{*starts, {}, std::vector<int64_t>(starts->size(), 1)};
  if (slice.input(3) != nullptr) {
    const auto axes = rewriter.ints(slice.input(3));
    if (!axes) return std::nullopt;
    for (const int64_t axis : *axes)
      bounds.axes.push_back(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  } else {
    for (size_t i = 0; i < starts->size(); ++i) bounds.axes.push_back(static_cast<int64_t>(i));
  }
  if (slice.input(4) != nullptr) {
    const auto steps = rewriter.ints(slice.input(4));
    if (!steps) return std::nullopt;
    bounds.steps = *steps;
  }
  if (bounds.axes.size() != starts->size() || bounds.steps.size() != starts->size())
    return std::nullopt;
  return bounds;
}

}  // namespace tombolo
