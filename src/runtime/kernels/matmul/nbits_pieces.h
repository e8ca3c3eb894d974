#pragma once

// Codes of 4 or 8 bits times many rows of floats by AMX. A float is the sum of three bf16, and a
// code less its zero point is one, so that products are exact; sums of a block of k are those of
// floats, and scales come on them. (The pieces: Veltkamp's splitting, T. J. Dekker, A
// floating-point technique for extending the available precision, 1971.) Numbers below 2^-110 lose
// pieces that are denormal.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/matmul/nbits.h"

namespace tombolo {

/// Whether the processor can, and there are rows enough to gain.
bool nbits_pieces_fit(const NbitsShape& shape, int64_t m);

/// y[m, n] = a[m, k] w + bias. False, with nothing done, where some number of a is not finite, or
/// rounds to what is not. Threaded.
bool nbits_gemm_pieces(const NbitsShape& shape, int64_t m, const float* a, const std::byte* packed,
                       const float* bias, float* y);

}  // namespace tombolo
