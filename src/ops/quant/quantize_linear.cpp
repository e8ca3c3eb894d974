#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_quantize_linear(InferContext& context) {
  InferType type = InferType::tensor(DType::kUndefined);
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  const int64_t number = context.attributes.get_int("output_dtype", 0);
  if (number != 0) {
    const auto dtype = dtype_from_number(number);
    if (!dtype)
      return context.error("output_dtype is " + std::to_string(number) + ", which is no type");
    if (context.has_input(2) && context.elem(2) != DType::kUndefined && context.elem(2) != *dtype)
      return context.error("output_dtype is " + std::string(name_of(*dtype)) +
                           ", but y_zero_point is " + std::string(name_of(context.elem(2))));
    type.elem = *dtype;
  } else {
    type.elem = context.has_input(2) ? context.elem(2) : DType::kUInt8;
  }
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

OPERATOR(QuantizeLinear) = {
    .name = "QuantizeLinear",
    .doc = "saturate(round(x / scale) + zero point), per tensor, axis or block",
    .versions = {10, 13, 19, 21, 23, 24, 25, 28},
    .inputs =
        {
            {"x", "T1"},
            {"y_scale", "tensor(float)", kSingle, {.until = 18}},
            {"y_scale", "T1", kSingle, {.since = 19, .until = 22}},
            {"y_zero_point", "T2", kOptional, {.until = 22}},
            {"y_scale", "T2", kSingle, {.since = 23}},
            {"y_zero_point", "T3", kOptional, {.since = 23}},
        },
    .outputs =
        {
            {"y", "T2", kSingle, {.until = 22}},
            {"y", "T3", kSingle, {.since = 23}},
        },
    .attributes =
        {
            {"axis", 1, {.since = 13}},
            {"saturate", 1, {.since = 19}},
            {"block_size", 0, {.since = 21}},
            {"output_dtype", 0, {.since = 21}},
            {"precision", 0, {.since = 23}},
        },
    .types =
        {
            {"T1", {{10, kF32 | kI32}, {19, kF16 | kBf16}}},
            {"T2", {{10, kInt8s}, {19, kFp8}, {21, kInt16s | kInt4}}, {.until = 22}},
            {"T2", {{23, kF32 | kI32 | kF16 | kBf16}, {24, kE8m0}}, {.since = 23}},
            {"T3",
             {{23, kFp8 | kInt8s | kInt16s | kInt4 | kFp4}, {25, kInt2}, {28, kFp6}},
             {.since = 23}},
        },
    .infer = infer_quantize_linear,
};

}  // namespace tombolo::ops
