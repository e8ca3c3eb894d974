#pragma once

// Windows of pools, taken apart: rows are combined first, neighbours within the result then.

#include <cstdint>

namespace tombolo {

enum class PoolFold : uint8_t { kMax, kSum, kSumSquare, kSumMagnitude };

/// out[i] = fold over r of rows[r][i], for n numbers of float, uint8_t or int8_t (bytes: kMax only).
/// Squares and magnitudes are those of the numbers read. A NaN stays.
template <typename T>
void pool_rows(PoolFold fold, const T* const* rows, int64_t count, int64_t n, T* out);
/// out[i] = fold over k < taps of x[i * stride + k * dilation]; what is read lies within
/// x[0, n * stride + taps * dilation). Sums of what pool_rows gave.
template <typename T>
void pool_neighbours(PoolFold fold, const T* x, int64_t taps, int64_t stride, int64_t dilation,
                     int64_t n, T* out);

}  // namespace tombolo
