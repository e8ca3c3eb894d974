#include "ops/infer_helpers.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_linear_regressor(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(const PostTransform transform, read_post_transform(context));
  const auto weights = context.attributes.get_floats("coefficients");
  const auto intercepts = context.attributes.get_floats("intercepts");
  const int64_t targets = context.attributes.get_int("targets", 1), features = x.dim(1);
  if (targets < 1 || targets > static_cast<int64_t>(weights.size()) ||
      static_cast<int64_t>(weights.size()) != targets * features ||
      (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != targets))
    return context.error("coefficients has " + std::to_string(weights.size()) +
                         " values and intercepts " + std::to_string(intercepts.size()) + ", for " +
                         std::to_string(targets) + " targets and " + std::to_string(features) +
                         " features");
  TRY(Tensor y, context.allocate(DType::kFloat64, {{x.dim(0), targets}}));
  for (int64_t row = 0; row < x.dim(0); ++row) {
    const std::span<double> scores(y.data<double>() + row * targets, static_cast<size_t>(targets));
    for (int64_t t = 0; t < targets; ++t) {
      double sum = intercepts.empty() ? 0 : static_cast<double>(intercepts[static_cast<size_t>(t)]);
      for (int64_t i = 0; i < features; ++i)
        sum += static_cast<double>(weights[static_cast<size_t>(t * features + i)]) *
               x.data<double>()[row * features + i];
      scores[static_cast<size_t>(t)] = sum;
    }
    transform_scores(transform, scores);
  }
  return give(context, 0, DType::kFloat32, std::move(y));
}

}  // namespace

namespace {
Status infer_linear_regressor(InferContext& context) {
  return infer_rows(context, 0, context.attributes.get_int("targets", 1));
}
}  // namespace

OPERATOR(LinearRegressor) = {
    .name = "LinearRegressor",
    .domain = "ai.onnx.ml",
    .doc = "linear function of the features",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"coefficients", Attr::kFloats},
            {"intercepts", Attr::kFloats},
            {"post_transform", "NONE"},
            {"targets", 1},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_linear_regressor,
    .reference = run_linear_regressor,
};

}  // namespace tombolo::ops
