#pragma once

// What convolutions, pooling and other layers over pictures share: layout and padding.

#include <vector>

#include "formats/keras/layer.h"

namespace tombolo::keras {

/// Moves the last axis to place 1, and back.
Value* to_channels_first(GraphBuilder& b, Value* x);
Value* to_channels_last(GraphBuilder& b, Value* x);

/// A layer over `count` spatial axes: its input channels-first, its settings read.
struct Spatial {
  bool first = false;  ///< data_format of the source
  size_t count = 0;
  Value* x = nullptr;  ///< channels first
  std::vector<int64_t> strides, dilations;

  /// The input's length along a spatial axis; unknown where it is free.
  SymDim length(const GraphBuilder& b, size_t axis) const {
    return b.dim(x, static_cast<int64_t>(axis) + 2);
  }
  /// The result in the source's layout.
  Value* back(GraphBuilder& b, Value* y) const { return first ? y : to_channels_last(b, y); }
};

Result<Spatial> read_spatial(LayerCall& call, size_t count);

/// Adds `pads` (or auto_pad where a length is free and it matters) for Keras's padding. SAME puts
/// the odd one behind: total = max((ceil(n / s) - 1) * s + (k - 1) * d + 1 - n, 0).
Status add_padding(const LayerCall& call, const Spatial& spatial,
                   const std::vector<int64_t>& kernel, Attrs& attrs);

}  // namespace tombolo::keras
