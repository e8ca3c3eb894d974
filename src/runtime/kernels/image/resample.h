#pragma once

// Weighted sums of a few elements, for resampling. Taps are padded to `taps` a place with weight 0.

#include <cstdint>

namespace tombolo {

/// y[i] = sum over t of weights[t * step + i] * x[first[i] + t], for i in [0, n) and x[0..length).
/// Places rise or fall.
void resample_row(const float* x, int64_t length, const int32_t* first, const float* weights,
                  int64_t step, int64_t taps, int64_t n, float* y);
/// y[i] = sum over t of weights[t] * x[t * step + i], for i in [0, n).
void blend_rows(const float* x, int64_t step, const float* weights, int64_t taps, int64_t n,
                float* y);
/// y[i] = sum over t of weights[i * taps + t] * x[first[i] + t], for i in [0, n), where elements of
/// x and y are runs of `inner` numbers.
void blend_places(const float* x, const int32_t* first, const float* weights, int64_t taps,
                  int64_t n, int64_t inner, float* y);

/// The same in double, with the very sums of the reference kernel.
void resample_row(const double* x, int64_t length, const int32_t* first, const double* weights,
                  int64_t step, int64_t taps, int64_t n, double* y);
void blend_rows(const double* x, int64_t step, const double* weights, int64_t taps, int64_t n,
                double* y);
/// int8_t and uint8_t; what is no whole number is cut off.
template <typename T>
void bytes_to_doubles(const T* x, int64_t n, double* y);
template <typename T>
void doubles_to_bytes(const double* x, int64_t n, T* y);

/// Each of n 32-bit elements twice, to y and, unless it is null, to `again`.
void double_row(const uint32_t* x, int64_t n, uint32_t* y, uint32_t* again);
/// y[i] = x[from[i]] of `length` numbers; places ascend.
void pick_row(const uint32_t* x, int64_t length, const int32_t* from, int64_t n, uint32_t* y);

}  // namespace tombolo
