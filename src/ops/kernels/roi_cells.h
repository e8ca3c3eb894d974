#pragma once

// Where the cells of a region for MaxRoiPool lie.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tombolo::ops {

/// Cells [first, last) of one axis of a region, cut to the picture.
struct CellSpan {
  int64_t first, last;
};
inline CellSpan cell_span(int64_t cell, int64_t cells, double start, double end, int64_t limit) {
  const double size = std::max(end - start + 1, 1.0) / static_cast<double>(cells);
  const double low = std::floor(static_cast<double>(cell) * size) + start;
  const double high = std::ceil(static_cast<double>(cell + 1) * size) + start;
  const auto most = static_cast<double>(limit);
  return {static_cast<int64_t>(std::clamp(low, 0.0, most)),
          static_cast<int64_t>(std::clamp(high, 0.0, most))};
}

}  // namespace tombolo::ops
