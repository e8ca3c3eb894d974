#pragma once

// Lines of AffineGrid: positions of points that follow each other along the last axis.

#include <cstdint>

namespace tombolo {

/// out[i * count + j] = start[j] + slope[j] * along[i] for i < n and j < count, which is 2 or 3;
/// T is float or double, rounded once. `along` has room for 16 more.
template <typename T>
void affine_line(const double* along, int64_t n, const double* start, const double* slope,
                 int64_t count, T* out);

}  // namespace tombolo
