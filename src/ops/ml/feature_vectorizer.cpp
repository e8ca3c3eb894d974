#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_feature_vectorizer(KernelContext& context) {
  const auto sizes = context.attributes.get_ints("inputdimensions");
  if (!sizes.empty() && sizes.size() != context.input_count())
    return context.error("inputdimensions has " + std::to_string(sizes.size()) + " values for " +
                         std::to_string(context.input_count()) + " inputs");
  std::vector<Tensor> inputs;
  std::vector<int64_t> widths;
  int64_t total = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    TRY(Tensor input, feature_rows(context, i));
    if (!inputs.empty() && input.dim(0) != inputs[0].dim(0))
      return context.error("input " + std::to_string(i) + " has " + std::to_string(input.dim(0)) +
                           " rows, the first has " + std::to_string(inputs[0].dim(0)));
    const int64_t width = sizes.empty() ? input.dim(1) : sizes[i];
    if (width < 0 || width >= int64_t{1} << 40)
      return context.error("inputdimensions has the value " + std::to_string(width));
    widths.push_back(width);
    total += width;
    inputs.push_back(std::move(input));
  }
  if (inputs.empty()) return context.error("there are no inputs");
  TRY(Tensor y, context.allocate(DType::kFloat64, {{inputs[0].dim(0), total}}));
  double* to = y.data<double>();
  for (int64_t row = 0; total > 0 && row < inputs[0].dim(0); ++row)
    for (size_t i = 0; i < inputs.size(); ++i) {
      // Features beyond the declared size are cut off, missing ones are zero.
      const int64_t have = std::min(widths[i], inputs[i].dim(1));
      to = std::copy_n(inputs[i].data<double>() + row * inputs[i].dim(1), have, to);
      to = std::fill_n(to, widths[i] - have, 0.0);
    }
  return give(context, 0, DType::kFloat32, std::move(y));
}

}  // namespace

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
    .reference = run_feature_vectorizer,
};

}  // namespace tombolo::ops
