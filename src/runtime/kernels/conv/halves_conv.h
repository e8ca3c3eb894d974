#pragma once

// Convolution over blocked channels (block.h), one pixel for each result, of weights in halves: by
// pairs of bytes (matmul/gemm_halves.h). Some pixels become bytes at a time and meet all weights.
// Pixels that are for floats meet the weights as bytes have them; panels of weights that are for
// floats are kept in float16, scaled, unless those are most.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/conv/conv.h"

namespace tombolo {

struct HalvesConv {
  ConvGeometry shape;
  size_t weight_bytes = 0;
};

/// Whether it pays.
bool halves_conv_fits(const ConvGeometry& shape);
HalvesConv plan_halves_conv(const ConvGeometry& shape);
/// Packs w [output][input].
void pack_halves_conv(const HalvesConv& plan, const float* w, std::byte* packed);
/// Whether run_halves_conv() can take the weights.
bool halves_conv_packed(const std::byte* packed);
/// x and y are blocked, so is the residual. The bias fills up the last block.
void run_halves_conv(const HalvesConv& plan, const float* x, const std::byte* packed, float* y,
                     const ConvEpilogue& epilogue);

}  // namespace tombolo
