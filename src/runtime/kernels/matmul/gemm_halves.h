#pragma once

// Products of models in halves by dot products of bytes (VNNI), four of which are as fast as one of
// floats. A number becomes two bytes, 16 bits of the largest of the 128 along k that share a scale;
// what comes in such a model counts to 11 or 8 bits, and so do its weights. Of the four products
// three are taken; of the fourth, at most 2^-16 of the largest, what it is on average. The sums of
// a block are exact.
//
// Infinities, NaN, blocks whose largest number is below 1e-30, and those of which fewer than an
// eighth (but for zeros) are at least a sixteenth of it are for floats: the caller is told. What is
// far above the others would take the digits of all of them, also where it meets a zero.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/matmul/gemm_tile.h"

namespace tombolo {

inline constexpr int64_t kHalvesBlock = 128;  ///< of k
inline constexpr int64_t kHalvesRows = 6;     ///< of a tile, at most
inline constexpr int64_t kHalvesWidth = 32;   ///< columns: a panel of packed B

/// Whether the processor gains by this, and the product is large enough to.
bool halves_pay(int64_t m, int64_t n, int64_t k);

/// Bytes of a tile of so many rows of A, and of a panel of B.
int64_t halves_tile_bytes(int64_t rows, int64_t k);
int64_t halves_panel_bytes(int64_t k);
/// One row of a tile: of its k numbers 16 lie together, and the next ones `step` floats on. False
/// where it is for floats.
bool halves_of_row(const float* x, int64_t step, int64_t k, int64_t row, int64_t rows,
                   std::byte* tile);
/// A packed panel of halves or floats, [k][32], as bytes. False where it is for floats.
bool halves_of_panel(PanelFormat format, const void* panel, int64_t k, std::byte* out);
/// The numbers that bytes stand for: [k][32].
void floats_of_panel(const std::byte* panel, int64_t k, float* out);
/// sums[rows][32] = tile times panel. Lines from `next` on are asked for, one with every four k.
void halves_product(const std::byte* tile, int64_t rows, const std::byte* panel, int64_t k,
                    const std::byte* next, float* sums);

}  // namespace tombolo
