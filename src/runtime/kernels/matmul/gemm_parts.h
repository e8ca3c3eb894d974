#pragma once

// Products by AMX of numbers that are sums of bf16, whose tiles multiply sixteen times as fast as
// vectors multiply floats.
//
// A model in float16 has weights that are exactly two bf16, one in bfloat16 such that are one, and
// what comes in it counts to 11 or 8 bits: two bf16, 17 bits, are more. That takes three products
// (the fourth is at most 2^-16 of the whole), or two. As each sum of 32 products is rounded once
// before it is added, the result is no further from the exact one. (The parts: Veltkamp's
// splitting, T. J. Dekker, A floating-point technique for extending the available precision, 1971.)
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
inline constexpr int64_t kPartBytes = 2 * 32 * 32;

/// Bytes of the parts of [32][32] numbers of A, and of B in panels of the format.
inline constexpr int64_t kPartsBytesA = 2 * kPartBytes;
constexpr int64_t parts_bytes_b(PanelFormat format) {
  return (format == PanelFormat::kFloat16 ? 2 : 1) * kPartBytes;
}

/// Whether B is in halves, the processor can, and the product is large enough to gain.
bool parts_fit(PanelFormat format, int64_t m, int64_t n, int64_t k);

/// rows x k floats as parts: [rows / 32][k / 32] blocks, filled up with zeros.
void parts_of_rows(const float* a, int64_t lda, int64_t rows, int64_t k, std::byte* out);
/// k rows of a panel, numbers of the format [k][32], as parts: [k / 32] blocks, filled up with
/// zeros.
void parts_of_panel(PanelFormat format, const void* b, int64_t k, std::byte* out);

struct PartsProduct {
  PanelFormat format;
  const std::byte* a;
  int64_t a_step;  ///< bytes from 32 rows to the next
  int64_t rows;
  const std::byte* b;
  int64_t blocks;              ///< of k
  bool accumulate;             ///< on what is in `sums`
  float* sums;                 ///< [rows up to a multiple of 32][32], 64-byte aligned
  const void* next = nullptr;  ///< of B, [blocks * 32][32], asked for meanwhile, or null
};
/// Between amx_begin(64) and amx_end() (qgemm.h).
void parts_product(const PartsProduct& product);

/// sums[rows][32] += some[rows][32].
void parts_add(const float* some, int64_t rows, float* sums);
/// Whether all of sums[rows][32] are finite.
bool parts_finite(const float* sums, int64_t rows);

}  // namespace tombolo
