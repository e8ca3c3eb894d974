#pragma once

// Weights of 2, 4 or 8 bits that lie in rows, the lowest bits of a byte first, as floats.

#include <cstdint>

namespace tombolo {

struct CodeRow {
  const uint8_t* bytes;
  int64_t first;  ///< code that the row begins with
  int bits;
  bool is_signed;  ///< of two's complement
};

/// y[i] = (code i - zeros[i / block]) * scales[i / block], for i < n.
void unpack_blocks(const CodeRow& row, int64_t n, int64_t block, const float* scales,
                   const float* zeros, float* y);

}  // namespace tombolo
