#pragma once

// The greatest number of each window of a pool, and where it stands.

#include <cstdint>

#include "runtime/kernels/conv/conv.h"

namespace tombolo {

/// How places count: an element at (depth, row, column) of its plane has the place
/// depth * step[0] + row * step[1] + column * step[2].
struct PoolPlaces {
  ConvGeometry shape;
  int64_t step[3] = {0, 0, 1};
};

/// One plane of float, double, uint8_t or int8_t. The first of equals counts, a NaN stays; a window
/// of padding alone gives the least value and the place -1. `first` is added to the other places;
/// `places` may be null. A plane has less than 2^31 elements.
template <typename T>
void pool_places(const PoolPlaces& pool, const T* x, int64_t first, T* y, int64_t* places);

}  // namespace tombolo
