#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_category_mapper(InferContext& context) {
  InferType type = InferType::tensor(DType::kUndefined);
  if (context.elem(0) == DType::kString) type.elem = DType::kInt64;
  if (context.elem(0) == DType::kInt64) type.elem = DType::kString;
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

OPERATOR(CategoryMapper) = {
    .name = "CategoryMapper",
    .domain = "ai.onnx.ml",
    .doc = "maps strings to numbers or back by a table",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"cats_int64s", Attr::kInts},
            {"cats_strings", Attr::kStrings},
            {"default_int64", -1},
            {"default_string", "_Unused"},
        },
    .types =
        {
            {"T1", {{1, kI64 | kStr}}},
            {"T2", {{1, kI64 | kStr}}},
        },
    .infer = infer_category_mapper,
};

}  // namespace tombolo::ops
