#pragma once

// The products of Winograd's filtering over blocked channels (block_winograd.cpp) by scaled float16
// (matmul/bf16.h), for the option fast_math: a few tiles have a scale of their own, and each matrix
// of transformed weights.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/conv/block.h"

namespace tombolo {

/// Whether it pays.
bool f16_winograd_fits(const ConvGeometry& shape);
size_t f16_winograd_bytes(const BlockConvPlan& plan);
/// Packs w [output][input][height][width].
void pack_f16_winograd(const BlockConvPlan& plan, const float* w, std::byte* packed);
/// Products [first, last) of `count` tiles: v [matrix][block][tiles][16] to m, the same of the
/// output blocks.
void multiply_f16_winograd(const BlockConvPlan& plan, const std::byte* packed, const float* v,
                           float* m, int64_t tiles, int64_t first, int64_t last, int64_t count);

}  // namespace tombolo
