#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_bit_cast(InferContext& context) {
  const int64_t number = context.attributes.get_int("to", 0);
  const auto dtype = dtype_from_number(number);
  if (!dtype) return context.error("to is " + std::to_string(number) + ", which is no type");
  if (context.elem(0) != DType::kUndefined && bits_of(context.elem(0)) != bits_of(*dtype))
    return context.error(std::string(name_of(context.elem(0))) + " and " +
                         std::string(name_of(*dtype)) + " differ in width");
  InferType type = InferType::tensor(*dtype);
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  return ok();
}
Status run_bit_cast(KernelContext& context) {
  TRY(const Tensor* in, context.input(0));
  TRY(const DType to, dtype_attribute(context, "to", DType::kUndefined));
  if (bits_of(in->dtype()) == 0 || bits_of(in->dtype()) != bits_of(to))
    return context.error("elements of " + to_string(*in) + " cannot be read as " +
                         std::string(name_of(to)) + ": the widths differ");
  context.set_output(0, in->reinterpreted(to));
  return ok();
}

}  // namespace

OPERATOR(BitCast) = {
    .name = "BitCast",
    .doc = "the same bits read as another element type of equal width",
    .versions = {26},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes = {{"to", required(Attr::kInt)}},
    .types =
        {
            {"T1",
             {{26, kNumbers | kFp8 | kComplex | kInt4 | kInt2 | kBool | kBf16 | kFp4 | kE8m0}}},
            {"T2",
             {{26, kNumbers | kFp8 | kComplex | kInt4 | kInt2 | kBool | kBf16 | kFp4 | kE8m0}}},
        },
    .infer = infer_bit_cast,
    .reference = run_bit_cast,
};

}  // namespace tombolo::ops
