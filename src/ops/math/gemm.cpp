#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_gemm(InferContext& context) {
  CHECK_OK(expect_rank(context, 0, 2));
  CHECK_OK(expect_rank(context, 1, 2));
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  const bool trans_a = context.attributes.get_int("transA", 0) != 0;
  const bool trans_b = context.attributes.get_int("transB", 0) != 0;
  SymShape out(2);
  if (a != nullptr) out[0] = (*a)[trans_a ? 1 : 0];
  if (b != nullptr) out[1] = (*b)[trans_b ? 0 : 1];
  if (a != nullptr && b != nullptr)
    CHECK_OK(unify_dims(context, (*a)[trans_a ? 0 : 1], (*b)[trans_b ? 1 : 0],
                        "columns of A against rows of B"));
  if (const SymShape* c = context.shape(2); c != nullptr && context.opset >= 7) {
    const auto sum = broadcast(out, *c);
    if (!sum) return sum.error();
    if (sum->size() != 2 ||
        (out[0].is_value() && sum->front().is_value() && out[0].value() != sum->front().value()) ||
        (out[1].is_value() && sum->back().is_value() && out[1].value() != sum->back().value()))
      return context.error("C of shape " + shape_to_string(*c) + " does not broadcast to " +
                           shape_to_string(out));
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(Gemm) = {
    .name = "Gemm",
    .doc = "alpha * A' * B' + beta * C, with A and B transposed on request",
    .versions = {1, 6, 7, 9, 11, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
            {"C", "T", kSingle, {.until = 10}},
            {"C", "T", kOptional, {.since = 11}},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 1.0f},
            {"beta", 1.0f},
            {"broadcast", 0, {.until = 6}},
            {"transA", 0},
            {"transB", 0},
        },
    .types = {{"T", {{1, kFloats}, {9, kInt32s}, {13, kBf16}}}},
    .infer = infer_gemm,
};

}  // namespace tombolo::ops
