#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_cumulative(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* shape = context.shape(0);
  if (const auto axis = scalar_of(context, 1); axis && axis->is_value() && shape != nullptr)
    CHECK_OK(checked_axis(context, axis->value(), shape->size()));
  return ok();
}
}  // namespace

OPERATOR(CumSum) = {
    .name = "CumSum",
    .doc = "running sum along an axis",
    .versions = {11, 14},
    .inputs =
        {
            {"x", "T"},
            {"axis", "T2"},
        },
    .outputs = {{"y", "T"}},
    .attributes =
        {
            {"exclusive", 0},
            {"reverse", 0},
        },
    .types =
        {
            {"T", {{11, kInt32s | kFloats32}, {14, kF16 | kBf16}}},
            {"T2", {{11, kIndices}}},
        },
    .infer = infer_cumulative,
};

OPERATOR(CumProd) = {
    .name = "CumProd",
    .doc = "running product along an axis",
    .versions = {26},
    .inputs =
        {
            {"x", "T"},
            {"axis", "T2"},
        },
    .outputs = {{"y", "T"}},
    .attributes =
        {
            {"exclusive", 0},
            {"reverse", 0},
        },
    .types =
        {
            {"T", {{26, kInt32s | kFloats | kBf16}}},
            {"T2", {{26, kIndices}}},
        },
    .infer = infer_cumulative,
};

}  // namespace tombolo::ops
