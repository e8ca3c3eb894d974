#pragma once

// Codes of 8 bits times few rows of floats without VNNI: each float is two numbers of 16 bits, 30
// bits of the largest of its block, and codes come out of their words two by two.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/matmul/nbits.h"

namespace tombolo {

bool nbits_pairs_fit(const NbitsShape& shape, int64_t m);

/// y[m, n] = a[m, k] w + bias. False, with nothing done, where some number of a is not finite or
/// all of a block are too small for a scale.
bool nbits_gemm_pairs(const NbitsShape& shape, int64_t m, const float* a, const std::byte* packed,
                      const float* bias, float* y);

}  // namespace tombolo
