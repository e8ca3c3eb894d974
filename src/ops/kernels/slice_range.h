#pragma once

// What Slice takes of one axis.

#include <algorithm>
#include <cstdint>

namespace tombolo::ops {

struct SliceRange {
  int64_t start, count;
};

/// The first place and the number of places of `start:end:step`, which is not 0, on an axis of
/// `length`. Bounds below 0 count from the end; those beyond an end stand for it.
inline SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t length) {
  // Where the walk may begin and end: [0, length] forwards, [-1, length - 1] backwards.
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
  start = std::clamp(start < 0 ? start + length : start, std::min<int64_t>(0, high), high);
  end = std::clamp(end < 0 ? end + length : end, low, high);
  if (step > 0 && end > start) return {start, (end - start - 1) / step + 1};
  if (step < 0 && end < start) return {start, (start - end - 1) / -std::max(step, -INT64_MAX) + 1};
  return {start, 0};
}

}  // namespace tombolo::ops
