#pragma once

// Rows of doubles: what norms take from them and give.

#include <cstdint>

namespace tombolo {

enum class SumOf : uint8_t { kValues, kMagnitudes, kSquares };
/// The sum of n numbers, less `shift` each, or of their magnitudes or squares.
double row_sum(SumOf of, const double* x, int64_t n, double shift);
/// y = (x - shift) * factor * scale[i] + bias[i]; a null scale or bias is one or zero. y may be x.
void normalize_row(const double* x, int64_t n, double shift, double factor, const double* scale,
                   const double* bias, double* y);

}  // namespace tombolo
