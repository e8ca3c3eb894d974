#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/cast.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_cast_like(InferContext& context) {
  InferType type = InferType::tensor(context.elem(1));
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  const bool wide = context.elem(1) == DType::kInt64 || context.elem(1) == DType::kInt32;
  if (const SymShape* elements = context.ints(0); elements != nullptr && wide)
    context.set_value(0, *elements);
  return ok();
}
}  // namespace

static Status body_of_cast_like(FunctionContext& context) {
  const DType target = context.input_type(1);
  if (target == DType::kUndefined)
    return runtime_error("the element type of input 1 (target_type) is not known");
  std::string attributes = "to = " + std::to_string(static_cast<int>(target));
  if (context.opset >= 19) attributes += ", saturate: int = @saturate";
  if (context.opset >= 24) attributes += ", round_mode: string = @round_mode";
  context.line("output = Cast <" + attributes + "> (input)");
  return ok();
}

namespace {

Status run_cast_like(KernelContext& context) {
  TRY(const Tensor* in, context.input(0));
  TRY(const Tensor* like, context.input(1));
  TRY(const CastOptions options, cast_options(context));
  TRY(Tensor out, cast_tensor(context, *in, like->dtype(), options));
  context.set_output(0, std::move(out));
  return ok();
}

}  // namespace

OPERATOR(CastLike) = {
    .name = "CastLike",
    .doc = "converts to the element type of a second tensor",
    .versions = {15, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"input", "T1"},
            {"target_type", "T2"},
        },
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"saturate", 1, {.since = 19}},
            {"round_mode", "up", {.since = 24}},
        },
    .types =
        {
            {"T1",
             {{15, kNumbers | kStr | kBool | kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
            {"T2",
             {{15, kNumbers | kStr | kBool | kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
        },
    .functions =
        {
            {.versions = {.until = 18}, .opset = 15, .builder = body_of_cast_like},
            {.versions = {.since = 19, .until = 20}, .opset = 19, .builder = body_of_cast_like},
            {.versions = {.since = 21, .until = 22}, .opset = 21, .builder = body_of_cast_like},
            {.versions = {.since = 23, .until = 23}, .opset = 23, .builder = body_of_cast_like},
            {.versions = {.since = 24, .until = 24}, .opset = 24, .builder = body_of_cast_like},
            {.versions = {.since = 25}, .opset = 25, .builder = body_of_cast_like},
        },
    .infer = infer_cast_like,
    .reference = run_cast_like,
};

}  // namespace tombolo::ops
