#pragma once

#include <cstdint>

namespace tombolo {

/// y = softmax(x) (or its logarithm) of rows of n doubles; y may be x.
void softmax_rows(const double* x, double* y, int64_t rows, int64_t n, bool logarithm);

}  // namespace tombolo
