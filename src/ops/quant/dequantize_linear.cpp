#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/quantize.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_dequantize_linear(InferContext& context) {
  InferType type = InferType::tensor(DType::kFloat32);
  if (context.opset >= 19) {
    type.elem = context.elem(1);
    const int64_t number = context.attributes.get_int("output_dtype", 0);
    if (number != 0) {
      const auto dtype = dtype_from_number(number);
      if (!dtype)
        return context.error("output_dtype is " + std::to_string(number) + ", which is no type");
      type.elem = *dtype;
    }
  }
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

namespace {

Status run_dequantize_linear(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* scale, context.input(1));
  TRY(const Tensor* zero, context.optional_input(2));
  TRY(const Granularity granularity, read_granularity(context, *x, *scale));
  if (zero != nullptr && zero->size() != scale->size())
    return context.error("x_zero_point must have the shape of x_scale, " + to_string(*scale) +
                         ", is " + to_string(*zero));
  const int64_t given = context.attributes.get_int("output_dtype", 0);
  DType type = scale->dtype() == DType::kFloat8E8M0 ? DType::kFloat32 : scale->dtype();
  if (given != 0) type = dtype_from_number(given).value_or(DType::kUndefined);
  if (!is_float(type) || bits_of(type) < 16)
    return context.error("the output cannot be of type " + std::string(name_of(type)));
  TRY(Tensor values, as<double>(context, *x));
  TRY(Tensor scales, as<double>(context, *scale));
  TRY(Tensor y, context.allocate(DType::kFloat64, x->dims()));
  context.parallel_for(x->size(), 4096, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t at = granularity.at(i);
      const double offset = zero == nullptr ? 0 : zero->get_double(at);
      y.data<double>()[i] = (values.data<double>()[i] - offset) * scales.data<double>()[at];
    }
  });
  return give(context, 0, type, std::move(y));
}

}  // namespace

OPERATOR(DequantizeLinear) = {
    .name = "DequantizeLinear",
    .doc = "(x - zero point) * scale, per tensor, axis or block",
    .versions = {10, 13, 19, 21, 23, 24, 25, 28},
    .inputs =
        {
            {"x", "T", kSingle, {.until = 18}},
            {"x_scale", "tensor(float)", kSingle, {.until = 18}},
            {"x_zero_point", "T", kOptional, {.until = 18}},
            {"x", "T1", kSingle, {.since = 19}},
            {"x_scale", "T2", kSingle, {.since = 19}},
            {"x_zero_point", "T1", kOptional, {.since = 19}},
        },
    .outputs =
        {
            {"y", "tensor(float)", kSingle, {.until = 18}},
            {"y", "T2", kSingle, {.since = 19, .until = 22}},
            {"y", "T3", kSingle, {.since = 23}},
        },
    .attributes =
        {
            {"axis", 1, {.since = 13}},
            {"block_size", 0, {.since = 21}},
            {"output_dtype", 0, {.since = 23}},
        },
    .types =
        {
            {"T", {{10, kInt8s | kI32}}, {.until = 18}},
            {"T1",
             {{19, kFp8 | kInt8s | kI32},
              {21, kInt16s | kInt4},
              {23, kFp4},
              {25, kInt2},
              {28, kFp6}},
             {.since = 19}},
            {"T2", {{19, kF32 | kF16 | kBf16}, {24, kE8m0}}, {.since = 19}},
            {"T3", {{23, kF32 | kF16 | kBf16}}, {.since = 23}},
        },
    .infer = infer_dequantize_linear,
    .reference = run_dequantize_linear,
    .down = {{23, 21, step_dequantize_scale_type}, {21, 19, step_dequantize_by_hand}},
};

}  // namespace tombolo::ops
