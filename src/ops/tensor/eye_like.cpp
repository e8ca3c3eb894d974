#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
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
Status run_eye_like(KernelContext& context) {
  TRY(const Tensor* like, context.input(0));
  TRY(const DType dtype, dtype_attribute(context, "dtype", like->dtype()));
  if (like->rank() != 2) return context.error("a matrix is needed, not " + to_string(*like));
  if (is_string(dtype) || is_complex(dtype))
    return unsupported("a diagonal of type " + std::string(name_of(dtype)));
  TRY(Tensor * out, context.output(0, dtype, like->dims()));
  fill_zero(*out);
  const int64_t k = context.attributes.get_int("k", 0);
  const int64_t rows = like->dim(0), columns = like->dim(1);
  if (k <= -rows || k >= columns) return ok();
  for (int64_t i = std::max<int64_t>(0, -k); i < rows && i + k < columns; ++i)
    out->set_int64(i * columns + i + k, 1);
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
    .reference = run_eye_like,
};

}  // namespace tombolo::ops
