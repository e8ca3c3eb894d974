#pragma once

// Steps down that write several nodes for one: operators and abilities that an operator set does
// not have yet.

#include "ops/step_context.h"

namespace tombolo::ops {

Status expand_trilu(StepContext& step);
Status expand_bitwise_not(StepContext& step);
Status expand_bitwise(StepContext& step);  ///< BitwiseAnd, BitwiseOr, BitwiseXor: bit by bit
Status expand_tensor_scatter(StepContext& step);
Status expand_cumulative_product(StepContext& step);

Status expand_attention(StepContext& step);
Status expand_group_normalization(StepContext& step);
Status expand_layer_normalization(StepContext& step);
Status expand_rms_normalization(StepContext& step);
Status expand_rotary_embedding(StepContext& step);

/// Blocks, 16- and 4-bit integers and output types of (De)QuantizeLinear, in arithmetic.
Status step_quantize_by_hand(StepContext& step);
Status step_dequantize_by_hand(StepContext& step);
/// x takes the type of the scale, in which the division is done.
Status step_quantize_one_type(StepContext& step);
/// The output has the type of the scale.
Status step_dequantize_scale_type(StepContext& step);

Status expand_grid_sample(StepContext& step);  ///< of any number of axes, as a sum of elements
Status expand_affine_grid(StepContext& step);
Status expand_col2im(StepContext& step);       ///< a transposed convolution
Status expand_deform_conv(StepContext& step);  ///< GridSample and a product

/// Resize: axes, antialias and policies; then sizes and roi as inputs that must be there; then
/// asymmetric coordinates only; then Upsample.
Status step_resize_symmetric(StepContext& step);
Status step_resize_all_axes(StepContext& step);
Status step_resize_empty_inputs(StepContext& step);
Status step_resize_asymmetric(StepContext& step);
Status step_resize_upsample(StepContext& step);

}  // namespace tombolo::ops
