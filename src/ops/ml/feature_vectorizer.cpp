#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_feature_vectorizer(InferContext& context) {
  const SymShape* first = context.shape(0);
  SymDim columns = 0;
  const auto widths = context.attributes.get_ints("inputdimensions");
  for (size_t i = 0; i < context.input_count(); ++i) {
    const SymShape* shape = context.shape(i);
    columns = columns + (i < widths.size()                        ? SymDim(widths[i])
                         : shape != nullptr && shape->size() == 2 ? (*shape)[1]
                                                                  : SymDim());
  }
  if (first != nullptr && first->size() == 2)
    context.set_tensor(0, DType::kFloat32, {(*first)[0], columns});
  return ok();
}
}  // namespace

OPERATOR(FeatureVectorizer) = {
    .name = "FeatureVectorizer",
    .domain = "ai.onnx.ml",
    .doc = "joins feature tensors into one float vector a row",
    .versions = {1},
    .inputs = {{"X", "T1", kVariadic}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes = {{"inputdimensions", Attr::kInts}},
    .types = {{"T1", {{1, kFloats32 | kIndices}}}},
    .infer = infer_feature_vectorizer,
};

}  // namespace tombolo::ops
