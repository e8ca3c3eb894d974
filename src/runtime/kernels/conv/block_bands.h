#pragma once

// Convolutions and pools over blocked channels one behind the other, a band of rows at a time: what
// one of them writes is still in the second cache when the next one reads it, and never gets
// further. Where networks begin, and where they widen before a convolution by channels, images are
// larger than that cache, and to write and fetch them takes as long as the products.

#include <cstdint>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {

/// The state of a node that may be a stage of such: one of conv and pool is set if it is one.
struct BlockStageState : KernelState {
  const BlockConvPlan* conv = nullptr;
  const BlockPool* pool = nullptr;
  const float* packed = nullptr;  ///< weights of conv
  Activation activation;
};

extern const JoinedRow kBlockBands;

}  // namespace tombolo
