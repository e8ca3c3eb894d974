#pragma once

// What DeformConv reads: four neighbours of each point, channels last.

#include <cstdint>

#include "runtime/kernels/conv/conv.h"

namespace tombolo {

constexpr int64_t kDeformPixels = 256;  ///< of a block, at most

/// Output pixels that are computed together, and where their windows begin.
struct DeformBlock {
  int64_t first, count;
  double rows[kDeformPixels + 16], columns[kDeformPixels + 16];  ///< and room for a vector
};
DeformBlock deform_block(const ConvGeometry& shape, int64_t first, int64_t count);

/// Where one tap of the kernel reads for each pixel of a block, and how much: corner i of pixel p
/// at [i * kDeformPixels + p]. What does not count is the pixel of zeros behind the image.
/// `offset_y`, `offset_x` and `mask` (or null) are of the block's pixels.
template <typename T>
void deform_corners(const ConvGeometry& shape, const DeformBlock& block, int64_t tap,
                    const T* offset_y, const T* offset_x, const T* mask, int32_t* places,
                    T* weights);

/// Channels side by side that share their offsets and their group of weights.
struct DeformPiece {
  int64_t channel, count;
  int64_t share;     ///< whose offsets
  int64_t to, step;  ///< in a row of windows: of the first tap, and from one to the next
};

/// Rows of windows, one for each pixel of the block, from an image of `channels` channels, which
/// lie together. Places and weights are those of [share][tap]. Whole vectors are read and written:
/// image and rows have room for one more.
template <typename T>
struct DeformGather {
  const T* image;
  int64_t channels, taps, pixels;
  const DeformPiece* pieces;
  const int64_t* first;  ///< piece of each group, and the end
  int64_t groups;
  const int32_t* places;
  const T* weights;
  T* rows;
  int64_t row;  ///< elements from one to the next
};
template <typename T>
void deform_gather(const DeformGather<T>& task);

}  // namespace tombolo
