#pragma once

// Where the greatest numbers stand.

#include <cstdint>

namespace tombolo {

/// The place of the greatest (or least) of n numbers; NaN counts as one, the first of equals wins,
/// or the last. n is below 2^31.
int64_t extremum_place(const float* x, int64_t n, bool greatest, bool last);
/// The same down each of `width` columns of n rows, whose elements are `step` apart.
void extremum_places(const float* x, int64_t n, int64_t step, int64_t width, bool greatest,
                     bool last, int64_t* places);

}  // namespace tombolo
