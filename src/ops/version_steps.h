#pragma once

// Version steps that several operators share. What one operator needs alone stands in its file.

#include "ops/step_context.h"

namespace tombolo::ops {

/// Opset 7: `broadcast` and `axis` give way to numpy broadcasting. An axis that is not the last
/// possible one puts axes of length 1 behind those of B.
Status step_numpy_broadcast(StepContext& step);

/// The attribute `axes` becomes input 1. An empty list means all axes, as an absent one does.
Status step_axes_to_input(StepContext& step);

/// Opset 13: Softmax, LogSoftmax and Hardmax work along one axis; before, on the tensor flattened
/// to two dimensions in front of `axis`.
Status step_one_axis(StepContext& step);

/// Opset 2: the exponent `p` of LpPool and GlobalLpPool becomes a whole number.
Status step_whole_exponent(StepContext& step);

/// A boundary at which an operator lost its integer types.
Status step_no_integers(StepContext& step);

/// A deprecated operator without an equal: it keeps its version.
Status step_deprecated(StepContext& step);

/// `output_sequence` told whether Y is computed; that it is read says so now.
Status step_drop_output_sequence(StepContext& step);

}  // namespace tombolo::ops
