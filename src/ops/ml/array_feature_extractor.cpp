#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_array_feature_extractor(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* y = context.shape(1);
  if (x == nullptr || y == nullptr || x->empty()) return ok();
  SymShape out(x->begin(), x->end() - 1);
  if (x->size() == 1) out.push_back(1);
  out.push_back(product_of(*y));
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(ArrayFeatureExtractor) = {
    .name = "ArrayFeatureExtractor",
    .domain = "ai.onnx.ml",
    .doc = "columns of the last axis picked by index",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"Y", "tensor(int64)"},
        },
    .outputs = {{"Z", "T"}},
    .types = {{"T", {{1, kFloats32 | kIndices | kStr}}}},
    .infer = infer_array_feature_extractor,
};

}  // namespace tombolo::ops
