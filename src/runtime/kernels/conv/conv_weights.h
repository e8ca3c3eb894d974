#pragma once

// What kernels of Conv (X, W, B, Z; activation) read beside X: the constant W as it is packed,
// floats without positions that only ever see padding, and what is added to sums.

#include <vector>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/kernel.h"
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

inline ConvEpilogue read_epilogue(KernelRun& run, const Activation& activation) {
  ConvEpilogue epilogue{.activation = activation};
  if (run.has_input(2)) epilogue.bias = run.data<float>(2);
  if (run.has_input(3)) epilogue.residual = run.data<float>(3);
  return epilogue;
}

}  // namespace tombolo
