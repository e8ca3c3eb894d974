#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_eye_like(InferContext& context) {
  CHECK_OK(expect_rank(context, 0, 2));
  InferType type = InferType::tensor(context.elem(0));
  if (const auto number = context.attributes.get_int("dtype")) {
    const auto dtype = dtype_from_number(*number);
    if (!dtype) return context.error("dtype is " + std::to_string(*number) + ", which is no type");
    type.elem = *dtype;
  }
  type.shape = context.shape(0) != nullptr ? *context.shape(0) : SymShape(2);
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

OPERATOR(EyeLike) = {
    .name = "EyeLike",
    .doc = "ones on a diagonal, zeros elsewhere",
    .versions = {9, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", Attr::kInt},
            {"k", 0},
        },
    .types =
        {
            {"T1", {{9, kNumbers | kBool}, {22, kBf16}}},
            {"T2", {{9, kNumbers | kBool}, {22, kBf16}}},
        },
    .infer = infer_eye_like,
};

}  // namespace tombolo::ops
