#pragma once

// Version steps that several operators share. What one operator needs alone stands in its file.

#include <span>
#include <string>
#include <string_view>

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

// Downwards.

/// The older version says the same, whatever the step up had to do.
Status step_as_it_is(StepContext& step);

/// Input 1, the axes, becomes an attribute; it must be constant.
Status step_axes_to_attribute(StepContext& step);

/// Before opset 13 Softmax, LogSoftmax and Hardmax flatten at `axis`: another axis than the last
/// one is moved there.
Status step_axis_last(StepContext& step);

/// Before opset 11 axes count from the front only.
Status step_axis_from_front(StepContext& step);

/// `layout` = 1 (batch first) of LSTM, GRU and RNN: transposes around the layout that there was.
Status step_batch_second(StepContext& step);

/// Dilations that say nothing go; others cannot be said.
Status step_no_dilations(StepContext& step);

/// Max, Min, Sum and Mean did not broadcast before opset 8.
Status step_equal_shapes(StepContext& step);

/// A line of ONNX text that defines the constant `name`, a scalar of this type.
std::string typed_scalar(std::string_view name, DType dtype, double value);
/// The same of int64 numbers: a list, or a scalar.
std::string int_list(std::string_view name, std::span<const int64_t> values);
std::string int_scalar(std::string_view name, int64_t value);

}  // namespace tombolo::ops
