#pragma once

// Products of floats by AMX: a float is exactly the sum of three bf16 (8 bits of its 24 each), and
// the product of two floats that of nine products of bf16, of which the three least, at most 2^-23
// of the whole together, are left out. Tiles multiply sixteen times as fast as vectors, so six such
// products still take less than half the time of one of floats, and as each sum of 32 products is
// rounded once before it is added, the result is no further from the exact one.
// (The parts: Veltkamp's splitting, T. J. Dekker, A floating-point technique for extending the
// available precision, 1971. Six of nine products: G. Henry, P. T. P. Tang, A. Heinecke, Leveraging
// the bfloat16 artificial intelligence datatype for higher-precision computations, 2019.)
//
// Numbers of 2^111 and above, infinities and NaN give NaN in all sums they take part in: the caller
// computes those again. Denormal parts count as zero: below 2^-110 a number keeps 16 bits.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

inline constexpr int64_t kPartsRows = 32;   ///< of A in a step of the product
inline constexpr int64_t kPartsDepth = 32;  ///< of k in a step
inline constexpr int64_t kPartsWidth = 32;  ///< columns: a panel of packed B
/// Bytes of the parts of [32][32] floats.
inline constexpr int64_t kPartsBytes = 3 * 2 * 32 * 32;

/// Whether products may go this way at all: off unless TOMBOLO_SPLIT_FLOATS=1 is in the environment
/// (docs/decisions.md says why), or this says so.
void allow_bf16x3(bool allow);
/// Whether they may, the processor can, and the product is large enough to gain.
bool bf16x3_fits(int64_t m, int64_t n, int64_t k);

/// rows x k floats as parts: [rows / 32][k / 32] blocks, filled up with zeros.
void bf16x3_rows(const float* a, int64_t lda, int64_t rows, int64_t k, std::byte* out);
/// k rows of a panel, floats [k][32], as parts: [k / 32] blocks, filled up with zeros.
void bf16x3_panel(const float* b, int64_t k, std::byte* out);

struct Bf16x3Product {
  const std::byte* a;
  int64_t a_step;  ///< bytes from 32 rows to the next
  int64_t rows;
  const std::byte* b;
  int64_t blocks;               ///< of k
  bool accumulate;              ///< on what is in `sums`
  float* sums;                  ///< [rows up to a multiple of 32][32], 64-byte aligned
  const float* next = nullptr;  ///< floats [blocks * 32][32] that are asked for meanwhile, or null
};
/// Between amx_begin(64) and amx_end() (qgemm.h).
void bf16x3_product(const Bf16x3Product& product);

/// sums[rows][32] += some[rows][32].
void bf16x3_add(const float* some, int64_t rows, float* sums);
/// Whether all of sums[rows][32] are finite.
bool bf16x3_finite(const float* sums, int64_t rows);

}  // namespace tombolo
