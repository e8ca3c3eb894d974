#pragma once

// What NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss share.

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// The loss of log probabilities [N, C, D...] of any float type against input 1, the class of each
/// [N, D...], with the weights of input 2, reduced as the attribute says, as output 0 of type
/// `dtype`.
Status negative_log_likelihood(KernelContext& context, const Tensor& log_probabilities,
                               DType dtype);

}  // namespace tombolo::ops
