#pragma once

// An activation as what a product applies to blocks of its result.

#include "runtime/kernels/conv/activation.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

/// Limits are part of the tiles, another activation follows them. It and its activation have to
/// live as long as the epilogue is used.
class ActivationPost {
 public:
  explicit ActivationPost(const Activation& activation) : post_{&apply, &activation} {}
  void set(GemmEpilogue& epilogue) const {
    const auto& activation = *static_cast<const Activation*>(post_.argument);
    if (activation.kind == Activation::Kind::kClamp) {
      epilogue.clamp = true;
      epilogue.lo = activation.alpha;
      epilogue.hi = activation.beta;
    } else if (!activation.tiled()) {
      epilogue.post = &post_;
    }
  }

 private:
  static void apply(const void* argument, float* c, int64_t ldc, int64_t, int64_t rows, int64_t,
                    int64_t columns) {
    apply_activation(*static_cast<const Activation*>(argument), c, ldc, rows, columns);
  }
  BlockPost post_;
};

}  // namespace tombolo
