#pragma once

// Running sums.

#include <cstdint>

namespace tombolo {

/// y[i * step + j] = sum of x[k * step + j] for k <= i (exclusive: k < i), for n rows of `width`
/// numbers; from the last row on where `reverse`. So for `blocks` of such rows, n * step apart.
/// Floats are summed in double.
template <typename T>
void running_sums(const T* x, int64_t blocks, int64_t n, int64_t step, int64_t width,
                  bool exclusive, bool reverse, T* y);
/// The same along each of `rows` rows of n numbers.
template <typename T>
void running_rows(const T* x, int64_t rows, int64_t n, bool exclusive, bool reverse, T* y);

}  // namespace tombolo
