#include "base/float_formats.h"
#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/quantize.h"
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

namespace {

/// `value` rounded to the precision of a type of floats.
double rounded_to(DType type, double value) {
  switch (type) {
    case DType::kFloat32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kFloat16:
      return static_cast<double>(static_cast<float>(Float16(value)));
    case DType::kBFloat16:
      return static_cast<double>(static_cast<float>(BFloat16(value)));
    default:
      return value;
  }
}

/// The type of y: that of the zero point, output_dtype, or uint8.
Result<DType> output_type(const KernelContext& context, const Tensor* zero) {
  const int64_t given = context.attributes.get_int("output_dtype", 0);
  const auto type = given == 0 ? (zero != nullptr ? zero->dtype() : DType::kUInt8)
                               : dtype_from_number(given).value_or(DType::kUndefined);
  const bool known = (is_integer(type) && bits_of(type) <= 16) ||
                     (is_float(type) && bits_of(type) <= 8 && type != DType::kFloat8E8M0);
  if (!known)
    return context.error("output_dtype is " + std::to_string(given) + ", not a quantised type");
  if (zero != nullptr && zero->dtype() != type)
    return context.error("output_dtype is " + std::string(name_of(type)) + ", y_zero_point is " +
                         to_string(*zero));
  return type;
}

/// The precision of the division: `precision`, else the type of the scale. An integer or a power
/// of two has none of its own: float.
Result<DType> division_type(const KernelContext& context, const Tensor& scale) {
  const int64_t given = context.attributes.get_int("precision", 0);
  if (given != 0) {
    const auto type = dtype_from_number(given);
    if (!type || !is_float(*type) || bits_of(*type) < 16)
      return context.error("precision is " + std::to_string(given) + ", not a type to divide in");
    return *type;
  }
  const bool own = is_float(scale.dtype()) && bits_of(scale.dtype()) >= 16;
  return own ? scale.dtype() : DType::kFloat32;
}

Status run_quantize_linear(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* scale, context.input(1));
  TRY(const Tensor* zero, context.optional_input(2));
  TRY(const Granularity granularity, read_granularity(context, *x, *scale));
  if (zero != nullptr && zero->size() != scale->size())
    return context.error("y_zero_point must have the shape of y_scale, " + to_string(*scale) +
                         ", is " + to_string(*zero));
  TRY(const DType type, output_type(context, zero));
  TRY(const DType division, division_type(context, *scale));
  // Divided in double and rounded to the precision: for formats of at most half its digits that
  // is the correctly rounded quotient.
  TRY(Tensor values, as<double>(context, *x));
  TRY(Tensor scales, as<double>(context, *scale));
  const auto quotient = [&](int64_t i) {
    return rounded_to(division, rounded_to(division, values.data<double>()[i]) /
                                    rounded_to(division, scales.data<double>()[granularity.at(i)]));
  };
  TRY(Tensor * y, context.output(0, type, x->dims()));
  if (is_integer(type)) {
    const IntegerRange range = range_of(type);
    for (int64_t i = 0; i < x->size(); ++i)
      y->set_int64(i, quantized(quotient(i),
                                zero == nullptr ? 0 : zero->get_int64(granularity.at(i)), range));
    return ok();
  }
  TRY(Tensor result, context.allocate(DType::kFloat64, x->dims()));
  for (int64_t i = 0; i < x->size(); ++i) {
    const double offset = zero == nullptr ? 0 : zero->get_double(granularity.at(i));
    result.data<double>()[i] = offset == 0 ? quotient(i) : quotient(i) + offset;
  }
  encode_floats(type, result.data<double>(), static_cast<size_t>(x->size()),
                y->mutable_bytes().data(),
                {.saturate = context.attributes.get_int("saturate", 1) != 0});
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
    .reference = run_quantize_linear,
    .down = {{23, 21, step_quantize_one_type}, {21, 19, step_quantize_by_hand}},
};

}  // namespace tombolo::ops
