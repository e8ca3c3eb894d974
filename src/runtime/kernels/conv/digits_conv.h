#pragma once

// Convolution over blocked channels (block.h) as a product of digits by AMX (gemm_digits.h). A
// pixel's channels lie together, filled up to whole steps. A kernel of one position takes each
// pixel with a scale of its own. Others take one scale for the image, padded and split by stride,
// so that what neighbouring results read lies side by side: rows of pixels one after the other, and
// nobody reads the results of those between them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/matmul/gemm_digits.h"

namespace tombolo {

struct DigitsConv {
  struct Phase {
    int64_t row, column;  ///< of the first pixel in the padded image
  };
  ConvGeometry shape;
  int64_t channels = 0;           ///< of a pixel, up to whole steps
  int64_t pixel = 0;              ///< bytes from one to the next
  int64_t rows = 0, columns = 0;  ///< of a phase
  std::vector<Phase> phases;
  std::vector<int64_t> steps;   ///< DigitRows::steps of a kernel of several positions
  std::vector<int32_t> places;  ///< DigitRows::places, -1 where nobody reads the result
  DigitPanels panels;
  /// The inputs are cut into so many, whose products are added up in the end: threads then share
  /// them out, and read little of what another has made.
  int64_t parts = 1;
  size_t weight_bytes = 0, scratch_bytes = 0;

  bool pointwise() const { return is_pointwise(shape); }
  int64_t results() const;  ///< rows of the product
};

/// Whether it pays.
bool digits_conv_fits(const ConvGeometry& shape);
DigitsConv plan_digits_conv(const ConvGeometry& shape);
/// Packs w [output of a group][input][position], if integers hold it.
void pack_digits_conv(const DigitsConv& plan, const float* w, std::byte* packed);
/// Whether the weights lie as digits; then run_digits_conv() takes them.
bool digits_conv_packed(const std::byte* packed);
/// x and y are blocked, so is the residual. The bias has an element for each output channel.
void run_digits_conv(const DigitsConv& plan, const float* x, const std::byte* packed, float* y,
                     const ConvEpilogue& epilogue, std::byte* scratch);

}  // namespace tombolo
