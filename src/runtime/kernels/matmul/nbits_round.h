#pragma once

// Rows of floats as signed bytes for products by codes (nbits.h): one byte of each number, or three
// that have all of its bits.

#include <cstddef>
#include <cstdint>

namespace tombolo {

/// A block of floats, n and zeros behind them up to `block` (of whole 16), as bytes: of every eight
/// the even ones, then the odd ones, as the tile takes codes out of a word; the eights `step`
/// apart. Gives the scale of the lowest byte, and less the sum of each number's bytes.
using NbitsRoundFn = float(const float* x, int64_t n, int64_t block, std::byte* out, int64_t step,
                           int32_t* less);
/// `parts` 1: the nearest of 127 steps of the greatest. 3: of 65,536, 256 and 1, 24 bits of the
/// greatest of the block, which is what floats have; the bytes of one value follow each other 8
/// apart, and the scale is not finite where some number is not, or they are too small for a scale
/// of their own.
NbitsRoundFn* nbits_round(int64_t parts);

/// The sums of three bytes each, [rows][3][wide], as one: y[rows, cols], ldy apart. `bias`: whole
/// vectors.
void nbits_add_parts(const float* sums, int64_t wide, int64_t rows, const float* bias, float* y,
                     int64_t ldy, int64_t cols);

}  // namespace tombolo
