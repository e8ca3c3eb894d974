#pragma once

// Winograd's F(2x2, 3x3) over blocked channels (block.h) by products of bf16 (matmul/bf16.h), for
// the option fast_math: its transforms only add, so that bf16 loses little more than in plain sums
// (root mean square 1.7 times as much), which F(4x4, 3x3) does not let it. Points 0, 1, -1 and
// infinity (Lavin and Gray 2015, section 4.1).

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/conv/conv.h"

namespace tombolo {

struct Bf16Winograd {
  ConvGeometry shape;
  int64_t tiles_y = 0, tiles_x = 0;
  int64_t blocks = 1;  ///< of tiles, which are taken all the way one after the other
  bool own = false;    ///< ... each by one thread
  size_t weight_bytes = 0, scratch_bytes = 0;

  int64_t tiles() const { return shape.batch * tiles_y * tiles_x; }
  /// Tiles of a block at most.
  int64_t held() const { return (tiles() + blocks - 1) / blocks; }
};

/// Whether it takes so much less time than the other ways, by floats or bf16, that its digits may
/// go.
bool bf16_winograd_pays(const ConvGeometry& shape);
Bf16Winograd plan_bf16_winograd(const ConvGeometry& shape);
/// Packs w [output][input][3][3].
void pack_bf16_winograd(const Bf16Winograd& plan, const float* w, std::byte* packed);
/// x and y are blocked, so is the residual. The bias fills up the last block.
void run_bf16_winograd(const Bf16Winograd& plan, const float* x, const std::byte* packed, float* y,
                       const ConvEpilogue& epilogue, std::byte* scratch);

}  // namespace tombolo
