#pragma once

#include <cstdint>

#include "runtime/kernels/conv/conv.h"

namespace tombolo {

/// Floats that spread_rows needs for itself.
int64_t spread_room(const ConvGeometry& shape);

/// The last step of a transposed convolution, for one channel of the output: rows [begin, end) of
/// y, counted over depth and height, are the bias and what every input pixel adds under its window.
/// `columns` is [kernel position][pixel of X]; `shape` has X as `in` and Y as `out`.
void spread_rows(const ConvGeometry& shape, const float* columns, float bias, int64_t begin,
                 int64_t end, float* y, float* room);

}  // namespace tombolo
