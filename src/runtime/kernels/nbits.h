#pragma once

// Products with weights of 4 bits in blocks along k that share a scale and a
// zero point. Packed: panels of one vector of columns, block by block: for
// every 8 k one 32-bit word a column, the first k in the lowest bits; then the
// scales; then, where they are not all 8, the zero points as bytes. What a
// product needs lies in one piece, in the order in which it is read.

#include <cstddef>
#include <cstdint>

namespace tombolo {

struct NbitsShape {
  int64_t n, k, block;
  bool has_zeros = false;
  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t words() const { return blocks() * block / 8; }  ///< of a column
};

/// Columns of a panel.
int nbits_panel();
size_t nbits_packed_bytes(const NbitsShape& shape);
/// codes [n, blocks, block / 2], scales [n, blocks], zeros packed a row (null:
/// 8).
void nbits_pack(const NbitsShape& shape, const uint8_t* codes, const float* scales,
                const uint8_t* zeros, std::byte* packed);
/// y[m, n] = a[m, k] w + bias, in floats.
void nbits_gemm(const NbitsShape& shape, int64_t m, const float* a, const std::byte* packed,
                const float* bias, float* y);

/// The same with `a` rounded to bytes block by block, as accuracy_level 4
/// allows, or to bf16 where AMX takes many rows. Only where nbits_has_bytes().
bool nbits_has_bytes();
void nbits_gemm_bytes(const NbitsShape& shape, int64_t m, const float* a, const std::byte* packed,
                      const float* bias, float* y);

inline constexpr int kNbitsRows = 12;

/// Rows of bytes times one panel. The rows come block by
/// block: for every row less the sum of its bytes (int32), for every row its
/// scale, then of every 8 k the bytes of every row, the four even ones first.
/// So they are read in order, at distances that the code knows.
struct NbitsTile {
  const std::byte *a, *panel;
  bool has_zeros;
  int64_t blocks, block;
  const float* bias;  ///< a whole vector, or null
  float* y;
  int64_t ldy, cols;
};
using NbitsTileFn = void(const NbitsTile&, int rows);
/// The tile of up to kNbitsRows for VNNI; null where the processor has none.
NbitsTileFn* nbits_vnni_tile();

/// Columns [0, 32) of two panels (the second may be null) as bf16, in pairs of
/// k: [k / 2][32][2].
void nbits_widen_bf16(const std::byte* first, const std::byte* second, bool has_zeros,
                      int64_t blocks, int64_t block, std::byte* out);

}  // namespace tombolo
