#pragma once

// The activation that an optimiser put into a convolution or a matrix product.

#include "ops/kernel_context.h"

namespace tombolo::ops {

struct FusedActivation {
  double (*function)(double x, double alpha, double beta) = nullptr;
  double alpha = 0, beta = 0;
  bool softmax = false;
  int64_t axis = -1;

  bool none() const { return function == nullptr && !softmax; }
  /// On a tensor of float or double, in place (the buffer is the caller's own).
  Status apply(const KernelContext& context, Tensor& tensor) const;
};

/// Reads `activation` with its parameters: the list `activation_params` (FusedConv), or
/// activation_alpha, activation_beta and activation_axis.
Result<FusedActivation> read_activation(const KernelContext& context);

}  // namespace tombolo::ops
