#pragma once

// Windows of pools, taken apart: rows are combined first, neighbours within the result then.

#include <cstdint>

namespace tombolo {

enum class PoolFold : uint8_t { kMax, kSum, kSumSquare, kSumMagnitude };

/// out[i] = fold over r of rows[r][i], for n numbers of float, uint8_t or int8_t (bytes: kMax
/// only). Squares and magnitudes are those of the numbers read. A NaN stays.
template <typename T>
void pool_rows(PoolFold fold, const T* const* rows, int64_t count, int64_t n, T* out);
/// What pool_neighbours does for `rows` rows, one after the other.
struct PoolLines {
  int64_t rows, step;  ///< of what is read: lines that are `step` apart
  int64_t taps, stride, dilation;
  int64_t n;                       ///< results of a row
  const float* factors = nullptr;  ///< one for each result of all rows, or null
};
/// out[r * n + i] = fold over k < taps of x[r * step + i * stride + k * dilation], times its
/// factor. What is read lies within n * stride + taps * dilation of each line, and two vectors
/// beyond. Sums of what pool_rows gave.
template <typename T>
void pool_neighbours(PoolFold fold, const T* x, const PoolLines& lines, T* out);

}  // namespace tombolo
