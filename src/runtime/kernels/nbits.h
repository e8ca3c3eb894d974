#pragma once

// Products with weights of 4 bits in blocks along k that share a scale and a zero point.
// Packed: panels of one vector of columns; for every 8 k one 32-bit word a column, the first k in
// the lowest bits. Scales and zero points lie beside: [panel][block][column].

#include <cstddef>
#include <cstdint>

namespace tombolo {

struct NbitsShape {
  int64_t n, k, block;
  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t words() const { return blocks() * block / 8; }  ///< of a column
};

/// Columns of a panel.
int nbits_panel();
size_t nbits_packed_bytes(const NbitsShape& shape);
/// codes [n, blocks, block / 2], scales [n, blocks], zeros packed a row (null: 8).
void nbits_pack(const NbitsShape& shape, const uint8_t* codes, const float* scales,
                const uint8_t* zeros, std::byte* packed);
/// y[m, n] = a[m, k] w + bias, in floats.
void nbits_gemm(const NbitsShape& shape, int64_t m, const float* a, const std::byte* packed,
                const float* bias, float* y);

}  // namespace tombolo
