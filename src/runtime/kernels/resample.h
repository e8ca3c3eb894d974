#pragma once

// Weighted sums of a few elements, for resampling. Taps are padded to `taps` a place with weight 0.

#include <cstdint>

namespace tombolo {

/// y[i] = sum over t of weights[t * n + i] * x[first[i] + t], for i in [0, n).
void resample_row(const float* x, const int32_t* first, const float* weights, int64_t taps,
                  int64_t n, float* y);
/// y[i] = sum over t of weights[t] * x[t * step + i], for i in [0, n).
void blend_rows(const float* x, int64_t step, const float* weights, int64_t taps, int64_t n,
                float* y);

/// Each of n 32-bit elements twice, to y and, unless it is null, to `again`.
void double_row(const uint32_t* x, int64_t n, uint32_t* y, uint32_t* again);

}  // namespace tombolo
