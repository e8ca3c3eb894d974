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

/// The same with `a` rounded to bytes block by block, as accuracy_level 4 allows. Only where the
/// processor has VNNI (has_vnni()).
void nbits_gemm_bytes(const NbitsShape& shape, int64_t m, const float* a, const std::byte* packed,
                      const float* bias, float* y);

inline constexpr int kNbitsRows = 12;

/// Rows of bytes times one panel: see nbits_vnni.cpp.
struct NbitsTile {
  const int8_t* a;
  int64_t lda;
  const float *a_scales, *sums;  ///< [row][block]
  const uint32_t* words;
  const float *scales, *zeros;
  int64_t blocks, block;
  const float* bias;
  float* y;
  int64_t ldy, cols;
};
void nbits_vnni_tile(const NbitsTile& tile, int rows);

}  // namespace tombolo
