#pragma once

// The products of Winograd's filtering over blocked channels (block_winograd.cpp) by AMX
// (gemm_digits.h): matrices of transformed tiles by transformed weights, each tile's channels
// with a scale of their own. They are exact but for a rounding each 256 channels, so what is
// transformed back magnifies less.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/conv/block.h"

namespace tombolo {

/// Whether it pays. Of the plan all but `digits` is known.
bool digits_winograd_fits(const BlockConvPlan& plan);
size_t digits_winograd_bytes(const BlockConvPlan& plan);
/// Packs w [output][input][3][3]. False where integers do not hold a transformed column.
bool pack_digits_winograd(const BlockConvPlan& plan, const float* w, std::byte* packed);
/// Products [first, last) of `count` tiles: v [matrix][block][tiles][16] to m, the same of the
/// output blocks.
void multiply_digits_winograd(const BlockConvPlan& plan, const std::byte* packed, const float* v,
                              float* m, int64_t tiles, int64_t first, int64_t last, int64_t count);

}  // namespace tombolo
