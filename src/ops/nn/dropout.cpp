#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_dropout(InferContext& context) {
  CHECK_OK(infer_unary(context));
  if (const SymShape* shape = context.shape(0)) set_shape(context, 1, *shape);
  return ok();
}
}  // namespace

OPERATOR(Dropout) = {
    .name = "Dropout",
    .doc = "zeroes random elements in training; the identity in inference",
    .versions = {1, 6, 7, 10, 12, 13, 22},
    .inputs =
        {
            {"data", "T"},
            {"ratio", "T1", kOptional, {.since = 12}},
            {"training_mode", "T2", kOptional, {.since = 12}},
        },
    .outputs =
        {
            {"output", "T"},
            {"mask", "T", kOptional, {.until = 9}},
            {"mask", "T1", kOptional, {.since = 10, .until = 11}},
            {"mask", "T2", kOptional, {.since = 12}},
        },
    .attributes =
        {
            {"consumed_inputs", Attr::kInts, {.until = 5}},
            {"is_test", 0, {.until = 6}},
            {"ratio", 0.5f, {.until = 11}},
            {"seed", Attr::kInt, {.since = 12}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {13, kBf16}, {22, kFp8}}},
            {"T1", {{10, kBool}}, {.since = 10, .until = 11}},
            {"T1", {{12, kFloats}, {22, kFp8 | kBf16}}, {.since = 12}},
            {"T2", {{12, kBool}}, {.since = 12}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_dropout,
};

}  // namespace tombolo::ops
