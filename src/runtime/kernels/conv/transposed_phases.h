#pragma once

// Transposed convolution as convolutions of stride one: output pixels that lie a stride apart see
// the same positions of the kernel, and are a phase.

#include <cstdint>
#include <vector>

#include "runtime/kernels/conv/conv.h"

namespace tombolo {

/// A phase along one axis. Positions of the kernel come in the order of what they see.
struct AxisPhase {
  int64_t output = 0;         ///< the first output, those after it are a stride apart
  int64_t input = 0;          ///< what the first output sees by a kernel position that is not moved
  int64_t count = 0;          ///< outputs
  std::vector<int64_t> taps;  ///< positions of the kernel
  std::vector<int64_t> back;  ///< of each, how many inputs before `input` it sees
};

/// Of each axis its phases, and what of the image, with padding around it, all of them see.
struct TransposedPhases {
  std::vector<AxisPhase> of_axis[3];
  int64_t before[3] = {};  ///< padding before the image
  int64_t size[3] = {};    ///< with the padding at both ends

  bool padded(const ConvGeometry& shape) const {
    return size[0] != shape.in[0] || size[1] != shape.in[1] || size[2] != shape.in[2];
  }
};

/// `shape` as read_transposed_geometry() gives it.
TransposedPhases phases_of(const ConvGeometry& shape);

}  // namespace tombolo
