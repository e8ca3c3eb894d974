#pragma once

// Sums of rows in double, and what norms make of rows of floats by them.

#include <cstdint>

namespace tombolo {

enum class Power : uint8_t { kValue, kMagnitude, kSquare };
/// Sum of (x[i] - shift) to the power over n numbers, of float or double.
template <typename T>
double row_sum_f64(Power power, const T* x, int64_t n, double shift);
/// sums[j] += the same down `width` columns of n rows, `step` apart, shifted by shifts[j] (null:
/// 0).
void column_sums_f64(Power power, const float* x, int64_t n, int64_t step, int64_t width,
                     const double* shifts, double* sums);
/// y = (x - shift) * factor, in double, rounded once.
void shift_scale_row(const float* x, int64_t n, double shift, double factor, float* y);
void shift_scale_columns(const float* x, int64_t n, int64_t step, int64_t width,
                         const double* shifts, const double* factors, float* y);

}  // namespace tombolo
