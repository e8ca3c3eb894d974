#pragma once

// Windows of pools, taken apart: rows are combined first, neighbours within the result then.

#include <cstdint>

namespace tombolo {

enum class PoolFold : uint8_t { kMax, kSum, kSumSquare, kSumMagnitude };

/// The rows that windows of one slice of the output take: window r holds rows
/// r * stride - pad + k * dilation of the depths first_depth + i * depth_step.
struct PoolWindows {
  int64_t depths, first_depth, depth_step,
      in_depths;  ///< those outside [0, in_depths) are left out
  int64_t rows, taps, stride, dilation, pad, in_rows;
  int64_t width;  ///< of a row
  int64_t step;   ///< from line to line of what is written
};
/// lines[r * step + i] = fold over the rows of window r, for i < width, of float, uint8_t or int8_t
/// (bytes: kMax only); `empty` where a window has none. Squares and magnitudes are those of the
/// numbers read. A NaN stays unless `numbers` says that there is none.
template <typename T>
void pool_rows(PoolFold fold, const T* x, const PoolWindows& windows, T empty, bool numbers,
               T* lines);
/// Whether one of n numbers is NaN.
bool any_nan(const float* x, int64_t n);

/// What pool_neighbours does for `rows` rows, one after the other.
struct PoolLines {
  int64_t rows, step;  ///< of what is read: lines that are `step` apart
  int64_t taps, stride, dilation;
  int64_t n;                       ///< results of a row
  bool numbers = false;            ///< there is no NaN
  const float* factors = nullptr;  ///< one for each result of all rows, or null
  /// Numbers side by side that are results of their own with one factor: stride and dilation count
  /// such pixels, n and step numbers. 1, or those of a cache line.
  int64_t pixel = 1;
};
/// out[r * n + i] = fold over k < taps of x[r * step + i * stride + k * dilation], times its
/// factor. What is read lies within n * stride + taps * dilation of each line, and two vectors
/// beyond. Sums of what pool_rows gave.
template <typename T>
void pool_neighbours(PoolFold fold, const T* x, const PoolLines& lines, T* out);

}  // namespace tombolo
