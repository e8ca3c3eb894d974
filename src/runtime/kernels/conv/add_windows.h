#pragma once

// Transposed convolution by windows: what a row of X gives at one position of the kernel is a small
// product, which is added to where it belongs in sums with channels last; these are turned at the
// end. Nothing of what each position gives is kept, and no lane is lost to short rows.

#include <cstddef>

#include "runtime/kernels/conv/conv.h"

namespace tombolo {

/// Whether it takes less time than a product of all positions and spreading it (spread.h). Of the
/// shape, `in` is that of X, `out` that of Y, channels are those of a group.
bool add_windows_pays(const ConvGeometry& shape);

/// Floats of w [group][input][output][position] as packed.
size_t add_windows_weight_floats(const ConvGeometry& shape);
void pack_add_windows(const ConvGeometry& shape, const float* w, float* packed);

/// y [batch][channel][pixel] from x and, unless null, a bias for each channel. Threaded.
void add_windows(const ConvGeometry& shape, const float* x, const float* packed, const float* bias,
                 float* y);

}  // namespace tombolo
