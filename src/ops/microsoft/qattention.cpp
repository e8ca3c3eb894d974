// Attention from a quantised input and quantised weights.

#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/matrix_product.h"
#include "ops/kernels/quantize.h"
#include "ops/microsoft/linear.h"
#include "ops/microsoft/projected.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_qattention(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  TRY(const Tensor* weight, context.input(1));
  TRY(const Tensor* bias, context.input(2));
  TRY(const Tensor* weight_scale, context.input(4));
  TRY(const float input_scale, scalar_scale(context, 3, "input_scale"));
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  if (input->rank() != 3) return context.error("input must have rank 3, is " + to_string(*input));
  TRY(const Projection widths, read_projection(context, *input, *weight, heads));
  const int64_t width = widths.width();
  CHECK_OK(check_dims(context, "bias", *bias, {{width}}));
  if (weight_scale->size() != 1 && weight_scale->size() != width)
    return context.error("weight_scale must be one or one for each of " + std::to_string(width) +
                         " columns, is " + to_string(*weight_scale));
  TRY(const Tensor left, without_zero_point(context, *input, 6, 2));
  TRY(const Tensor right, without_zero_point(context, *weight, 7, 1));
  TRY(const Tensor product, matrix_product(context, left, right));
  TRY(const Tensor added, as<float>(context, *bias));
  TRY(Tensor all, context.allocate(DType::kFloat32, product.dims()));
  for (int64_t i = 0; i < all.size(); ++i) {
    const int64_t column = i % width;
    const double scale = static_cast<double>(input_scale) *
                         weight_scale->get_double(weight_scale->size() == 1 ? 0 : column);
    all.data<float>()[i] = static_cast<float>(product.data<int32_t>()[i] * scale +
                                              static_cast<double>(added.data<float>()[column]));
  }
  TRY(Projected parts, split_projection<float>(context, all, widths));
  return attend_projected<float>(context, std::move(parts), widths, bias->dtype(),
                                 {.mask = 5, .past = 8, .present = 1});
}

Status infer_qattention(InferContext& context) {
  CHECK_OK(infer_projected(context, 8, 99));
  for (size_t i = 0; i < 2 && i < context.outputs.size(); ++i) {
    context.outputs[i].kind = Type::Kind::kTensor;
    context.outputs[i].elem = context.elem(3);
  }
  return ok();
}

}  // namespace

OPERATOR(microsoft_QAttention) = {
    .name = "QAttention",
    .domain = "com.microsoft",
    .doc = "Attention from a quantised input and quantised weights",
    .versions = {1},
    .inputs =
        {
            {"input", "T1"},
            {"weight", "T2"},
            {"bias", "T3"},
            {"input_scale", "T3"},
            {"weight_scale", "T3"},
            {"mask_index", "T4", kOptional},
            {"input_zero_point", "T1", kOptional},
            {"weight_zero_point", "T2", kOptional},
            {"past", "T3", kOptional},
        },
    .outputs =
        {
            {"output", "T3"},
            {"present", "T3", kOptional},
        },
    .attributes =
        {
            {"do_rotary", Attr::kInt},
            {"mask_filter_value", Attr::kFloat},
            {"num_heads", required(Attr::kInt)},
            {"past_present_share_buffer", Attr::kInt},
            {"scale", Attr::kFloat},
            {"unidirectional", 0},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
            {"T3", {{1, kF16 | kF32}}},
            {"T4", {{1, kI32}}},
        },
    .infer = infer_qattention,
    .reference = run_qattention,
};

}  // namespace tombolo::ops
