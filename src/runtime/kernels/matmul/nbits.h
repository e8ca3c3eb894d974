#pragma once

// Products with weights of 2, 4 or 8 bits in blocks along k that share a scale and a zero point, or
// of 4 bits that choose among 16 values. Packed: panels of one vector of columns, block by block:
// for every 8 k one 32-bit word a column, the first k in the lowest bits, or, of 8 bits, a word of
// the even k and one of the odd ones, or, of 2 bits, for every 16 k the word that their first half
// would have with 4 bits, and that of the second half two bits above it; then the scales; then,
// where they are not all in the middle, the zero points as bytes. What a product needs lies in one
// piece, in the order in which it is read.

#include <cstddef>
#include <cstdint>

namespace tombolo {

enum class NbitsKind : uint8_t { kTwo, kFour, kEight, kTable };
constexpr int nbits_of(NbitsKind kind) {
  return kind == NbitsKind::kTwo ? 2 : kind == NbitsKind::kEight ? 8 : 4;
}
/// k that come out of one word, or of the two of 8 bits.
constexpr int64_t nbits_step(NbitsKind kind) { return kind == NbitsKind::kTwo ? 16 : 8; }
/// How codes of `bits` (2, 4 or 8) are packed: of 2 bits as of 4 where blocks are no whole words.
constexpr NbitsKind nbits_kind(int64_t bits, int64_t block) {
  if (bits == 8) return NbitsKind::kEight;
  return bits == 2 && block % 16 == 0 ? NbitsKind::kTwo : NbitsKind::kFour;
}

struct NbitsShape {
  int64_t n, k, block;
  bool has_zeros = false;
  NbitsKind kind = NbitsKind::kFour;
  const float* table = nullptr;  ///< of kTable: 16 values
  bool one_scale = false;        ///< for all blocks of a column, and one zero point
  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t words() const { return blocks() * block / 8; }  ///< of 8 k, of a column
  int bits() const { return nbits_of(kind); }             ///< as they are packed
};

/// Weights as models have them. Codes of 2 bits that are packed as of 4 need zero points.
struct NbitsWeights {
  const uint8_t* codes;
  int64_t row_bytes;  ///< of a column of the product, whose k begin at a byte
  int bits = 4;
  bool high_first = false;         ///< of the two in a byte
  const float* scales;             ///< [n, blocks]
  const uint8_t* zeros = nullptr;  ///< [n, blocks], a byte each
};

/// Columns of a panel.
int nbits_panel();
size_t nbits_packed_bytes(const NbitsShape& shape);
void nbits_pack(const NbitsShape& shape, const NbitsWeights& weights, std::byte* packed);
/// y[m, n] = a[m, k] w + bias, in floats.
void nbits_gemm(const NbitsShape& shape, int64_t m, const float* a, const std::byte* packed,
                const float* bias, float* y);

/// Whether codes are worth keeping as digits of gemm_digits.h for so many rows: in every run they
/// would become that.
bool nbits_digits_fit(const NbitsShape& shape, int64_t m);
size_t nbits_digit_bytes(const NbitsShape& shape);
/// Of what nbits_pack() packed.
void nbits_pack_digits(const NbitsShape& shape, const std::byte* packed, std::byte* digits);
/// As nbits_gemm().
void nbits_gemm_digits(const NbitsShape& shape, int64_t m, const float* a, const std::byte* digits,
                       const float* bias, float* y);

/// The same with `a` rounded to bytes block by block, as accuracy_level 4
/// allows, or to bf16 where AMX takes many rows. Only where nbits_has_bytes(); blocks of whole 16.
bool nbits_has_bytes();
/// Whether a model with this accuracy_level, or the option fast_math, lets these rows be rounded
/// so. The option alone asks for blocks that are short: one large number takes the digits of its
/// block.
bool nbits_may_round(const NbitsShape& shape, int64_t accuracy_level, bool fast_math);
void nbits_gemm_bytes(const NbitsShape& shape, int64_t m, const float* a, const std::byte* packed,
                      const float* bias, float* y);

inline constexpr int kNbitsRows = 12;

/// Rows of bytes times one panel. The rows come block by
/// block: for every row less the sum of its bytes (int32), for every row its
/// scale, then of every 8 k the bytes of every row, the four even ones first.
/// So they are read in order, at distances that the code knows.
struct NbitsTile {
  const std::byte *a, *panel;
  NbitsKind kind;  ///< not kTable
  bool has_zeros;
  int64_t blocks, block;
  const float* bias;  ///< whole vectors, or null
  float* y;
  int64_t ldy, cols;
  /// Bytes to a second panel, whose columns go beside those of the first, all of which are there;
  /// 0: none. For kNbitsPairRows at most.
  int64_t panel_step = 0;
  /// Two panels: what comes after them is asked for with every eight k, a line of two places.
  const std::byte* next = nullptr;
  int64_t next_step = 0, next_also = 0;
};
/// Rows that two panels at a time leave registers for; with VNNI.
inline constexpr int kNbitsPairRows = 6;
/// So few wait for memory: bytes of a panel that are asked for early where it is the only stream.
inline constexpr int kNbitsFewRows = 4;
inline constexpr int64_t kNbitsAhead = 8192;
using NbitsTileFn = void(const NbitsTile&, int rows);
/// The tile of up to kNbitsRows for VNNI; null where the processor has none.
NbitsTileFn* nbits_vnni_tile();

/// Columns [0, 32) of two panels (the second may be null) as bf16, in pairs of
/// k: [k / 2][32][2]. Not `scaled`: codes less their zero points, which bf16 holds.
void nbits_widen_bf16(const NbitsShape& shape, const std::byte* first, const std::byte* second,
                      std::byte* out, bool scaled = true);

}  // namespace tombolo
