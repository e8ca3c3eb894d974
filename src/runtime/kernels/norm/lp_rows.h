#pragma once

// Rows divided by their norms.

#include <cstdint>

namespace tombolo {

/// y = x / norm for each of `rows` rows of n numbers, one behind the other: the root of the sum of
/// squares, or else the sum of magnitudes, in double. Where it is zero, so is y, which may be x. Of
/// float and double.
template <typename T>
void lp_rows(bool squares, const T* x, int64_t rows, int64_t n, T* y);
/// The same for each of `width` columns of `length` rows, `step` apart.
template <typename T>
void lp_columns(bool squares, const T* x, int64_t length, int64_t step, int64_t width, T* y);

}  // namespace tombolo
