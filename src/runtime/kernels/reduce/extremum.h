#pragma once

// Where the greatest numbers stand.

#include <cstdint>

#include "base/dtype.h"

namespace tombolo {

/// Types whose extremes are found here: floats and doubles, integers of up to 64 bits.
bool has_extremum_places(DType dtype);

/// Lines of n numbers, `step` elements apart; NaN counts as the greatest (or least), the first of
/// equals wins, or the last. n is below 2^31.
struct Extremum {
  int64_t n = 0, step = 1;
  bool greatest = true, last = false;
};

/// The place in each of `count` lines: one behind the other where step is 1, else side by side.
void extremum_places(const Extremum& extremum, DType dtype, const void* x, int64_t count,
                     int64_t* places);

}  // namespace tombolo
