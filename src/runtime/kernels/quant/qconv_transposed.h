#pragma once

// Transposed convolution of bytes with channels last: each phase of the output (see
// conv/transposed_phases.h) is a product of rows, whose results go a stride apart.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/kernels/conv/transposed_phases.h"
#include "runtime/kernels/quant/qconv_last.h"

namespace tombolo {

struct QTransposedPlan {
  struct Phase {
    std::vector<int64_t> taps;  ///< positions of the kernel; none: nothing is multiplied
    QProduct product;           ///< of one group
    int64_t out = 0;            ///< the first pixel of the output
    int64_t results = 0;        ///< rows of the result up to the last one
    size_t weights = 0;         ///< bytes before those of its groups
    size_t group_bytes = 0;
  };
  ConvGeometry shape;  ///< as read_transposed_geometry() gives it
  bool flip = false;   ///< bytes of x get 128 more: the products want them unsigned
  bool zeros = false;  ///< weights have zero points besides the middle
  bool copy = false;   ///< the image is copied, with its padding
  QImage image = {};
  int64_t step = 1;  ///< pixels of the output from row to row of a result
  std::vector<Phase> phases;
  size_t weight_bytes = 0, image_bytes = 0;

  int64_t outputs() const { return shape.groups * shape.out_channels; }
  int64_t pixels() const {  ///< that are read
    return image.size[0] * image.size[1] * image.size[2];
  }
  /// Sums of what each result sees, which the weights' zero points multiply, and of each pixel.
  size_t sum_bytes() const;
  size_t scratch_bytes() const { return (image_bytes + 63) / 64 * 64 + sum_bytes(); }
};

/// Whether there are not too many phases, each has enough outputs, and the image with its padding
/// is not much larger than without.
bool q_transposed_takes(const ConvGeometry& shape);

/// `zeros`: the weights have zero points besides the middle.
QTransposedPlan plan_qconv_transposed(const ConvGeometry& shape, bool x_signed, bool zeros,
                                      const QTiles& tiles);
/// w [C, M / group, ...], signed after `flip`, and `zeros`: how far each output's zero point is
/// from the middle, or null. sums: [phase][output], of the weights less their zero points.
void pack_qconv_transposed(const QTransposedPlan& plan, const uint8_t* w, bool flip,
                           const int32_t* zeros, std::byte* packed, int32_t* sums);
/// `finish`: bytes, with column_add of the first phase; `add_step` numbers after those are those of
/// the next.
void run_qconv_transposed(const QTransposedPlan& plan, const uint8_t* x, uint8_t zero,
                          const std::byte* packed, const QFinish& finish, int64_t add_step,
                          std::byte* scratch);

}  // namespace tombolo
