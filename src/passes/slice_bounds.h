#pragma once

// What the constant inputs of Slice say (specification of Slice-13), but for the ends.

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/rewriter.h"

namespace tombolo {

/// One for each sliced axis; axes count from the front.
struct SlicedAxes {
  std::vector<int64_t> axes, steps;
};
struct SliceBounds : SlicedAxes {
  std::vector<int64_t> starts;
};

/// Of a Slice with `count` starts: nothing where they are not known, or not as many.
inline std::optional<SlicedAxes> sliced_axes(const Rewriter& rewriter, const Node& slice,
                                             size_t count, size_t rank) {
  SlicedAxes sliced{{}, std::vector<int64_t>(count, 1)};
  if (slice.input(3) != nullptr) {
    const auto axes = rewriter.ints(slice.input(3));
    if (!axes) return std::nullopt;
    for (const int64_t axis : *axes)
      sliced.axes.push_back(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  } else {
    for (size_t i = 0; i < count; ++i) sliced.axes.push_back(static_cast<int64_t>(i));
  }
  if (slice.input(4) != nullptr) {
    const auto steps = rewriter.ints(slice.input(4));
    if (!steps) return std::nullopt;
    sliced.steps = *steps;
  }
  if (sliced.axes.size() != count || sliced.steps.size() != count) return std::nullopt;
  return sliced;
}

/// Nothing where they are not known, or not of one length. Axes are as many as written: whether
/// they are below `rank` is for the caller to ask.
inline std::optional<SliceBounds> slice_bounds(const Rewriter& rewriter, const Node& slice,
                                               size_t rank) {
  const auto starts = rewriter.ints(slice.input(1));
  if (!starts) return std::nullopt;
  auto sliced = sliced_axes(rewriter, slice, starts->size(), rank);
  if (!sliced) return std::nullopt;
  return SliceBounds{*std::move(sliced), *starts};
}

}  // namespace tombolo
