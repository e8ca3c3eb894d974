#pragma once

// Where GridSample reads, many points at a time: what ops/kernels/grid_taps.h says of one.

#include <cstdint>

#include "ops/kernels/grid_taps.h"

namespace tombolo {

/// One axis of the picture.
struct GridAxis {
  int64_t length, stride;  ///< elements along it; elements from one to the next
  ops::GridMode mode;
  ops::GridPadding padding;
  bool aligned;
  int taps() const {
    return mode == ops::GridMode::kNearest ? 1 : mode == ops::GridMode::kLinear ? 2 : 4;
  }
};

/// Takes an axis into the taps of n points whose position along it is at[i * step]. Tap t of point
/// i stands at [t * n + i] of `places` (an offset) and `factors` (a weight), which hold `filled`
/// taps a point before, of which each becomes axis.taps(). What lies outside weighs nothing.
void add_grid_axis(const GridAxis& axis, const float* at, int64_t step, int64_t n, int64_t filled,
                   int32_t* places, double* factors);

}  // namespace tombolo
