#pragma once

// The constant kernel of a convolution as it is packed: floats, without positions that only ever
// see padding.

#include <vector>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/weights.h"

namespace tombolo {

struct ConvWeights {
  ConvWeights(const PrepareContext& context, const LiveTaps& live) {
    const Tensor& w = context.aligned_constant(1, copy_);
    data = weight_floats(w, 0, w.size(), room_);
    if (live.whole()) return;
    live_ = live.weights(data, w.dim(0) * w.dim(1));
    data = live_.data();
  }
  ConvWeights(const ConvWeights&) = delete;
  ConvWeights& operator=(const ConvWeights&) = delete;

  const float* data;

 private:
  Tensor copy_;
  std::vector<float> room_, live_;
};

}  // namespace tombolo
