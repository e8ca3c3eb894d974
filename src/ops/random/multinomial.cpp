#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_multinomial(InferContext& context) {
  CHECK_OK(expect_rank(context, 0, 2));
  const SymShape* x = context.shape(0);
  const auto dtype = dtype_from_number(context.attributes.get_int("dtype", 6));
  if (dtype != DType::kInt32 && dtype != DType::kInt64)
    return context.error("dtype must be int32 (6) or int64 (7), but it is " +
                         std::to_string(context.attributes.get_int("dtype", 6)));
  context.set_tensor(
      0, *dtype,
      {x != nullptr ? (*x)[0] : SymDim(), SymDim(context.attributes.get_int("sample_size", 1))});
  return ok();
}
}  // namespace

OPERATOR(Multinomial) = {
    .name = "Multinomial",
    .doc = "draws classes by unnormalised log-probabilities",
    .versions = {7, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", 6},
            {"sample_size", 1},
            {"seed", Attr::kFloat},
        },
    .types =
        {
            {"T1", {{7, kFloats}, {22, kBf16}}},
            {"T2", {{7, kIndices}}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_multinomial,
};

}  // namespace tombolo::ops
