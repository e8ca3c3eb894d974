#pragma once

// Rows of doubles: what norms give.

#include <cstdint>

namespace tombolo {

/// y = (x - shift) * factor * scale[i] + bias[i]; a null scale or bias is one or zero. y may be x.
void normalize_row(const double* x, int64_t n, double shift, double factor, const double* scale,
                   const double* bias, double* y);

}  // namespace tombolo
