#include "ops/infer_helpers.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_linear_classifier(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(const ClassLabels labels, read_labels(context, "classlabels_ints", "classlabels_strings"));
  TRY(const PostTransform transform, read_post_transform(context));
  const auto weights = context.attributes.get_floats("coefficients");
  const auto intercepts = context.attributes.get_floats("intercepts");
  const auto features = static_cast<size_t>(x.dim(1));
  if (features == 0 || weights.empty() || weights.size() % features != 0)
    return context.error("coefficients has " + std::to_string(weights.size()) + " values for " +
                         std::to_string(features) + " features");
  const size_t count = weights.size() / features;
  const auto named = static_cast<size_t>(labels.count());
  if (!intercepts.empty() && intercepts.size() != count)
    return context.error("intercepts has " + std::to_string(intercepts.size()) + " values for " +
                         std::to_string(count) + " scores");
  if (named > 1 && count != named && !(count == 1 && named == 2))
    return context.error("there are " + std::to_string(named) + " labels for " +
                         std::to_string(count) + " scores");
  std::vector<std::vector<double>> rows;
  std::vector<int64_t> numbers;
  for (int64_t row = 0; row < x.dim(0); ++row) {
    std::vector<double> scores(count);
    for (size_t c = 0; c < count; ++c) {
      double sum = intercepts.empty() ? 0 : static_cast<double>(intercepts[c]);
      for (size_t i = 0; i < features; ++i)
        sum += static_cast<double>(weights[c * features + i]) *
               x.data<double>()[static_cast<size_t>(row) * features + i];
      scores[c] = sum;
    }
    // One score for two classes is that of the second.
    if (count == 1 && labels.count() == 2) scores = {-scores[0], scores[0]};
    // By the scores themselves: what they become may be equal where they are not.
    const int64_t best = greatest(scores);
    transform_scores(transform, scores);
    if (scores.size() > 1) {
      numbers.push_back(best);
    } else {
      const double threshold = transform == PostTransform::kNone ? 0 : 0.5;
      // One label stands for the score being above the threshold; 0 for it not being so.
      const bool above = scores[0] >= threshold;
      numbers.push_back(labels.count() == 0 ? (above ? 1 : 0) : above ? 0 : -1);
    }
    rows.push_back(std::move(scores));
  }
  CHECK_OK(give_scores(context, 1, DType::kFloat32, rows, std::max(count, named)));
  CHECK_OK(give_labels(context, labels, numbers));
  if (labels.strings.empty() && labels.count() == 1) {
    int64_t* y = context.outputs[0].tensor().data<int64_t>();
    for (size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i] < 0) y[i] = 0;
  }
  return ok();
}

}  // namespace

namespace {
Status infer_linear_classifier(InferContext& context) {
  const auto strings = context.attributes.get_strings("classlabels_strings");
  const auto ints = context.attributes.get_ints("classlabels_ints");
  const size_t classes = std::max(strings.size(), ints.size());
  const SymShape* x = context.shape(0);
  InferType labels = InferType::tensor(!strings.empty() ? DType::kString : DType::kInt64);
  InferType scores = InferType::tensor(DType::kFloat32);
  if (x != nullptr) {
    const SymDim rows = x->size() == 2 ? (*x)[0] : x->size() == 1 ? SymDim(1) : SymDim();
    labels.shape = SymShape{rows};
    // One class alone may still give two columns, by post_transform and intercepts.
    scores.shape = SymShape{rows, classes > 1 ? SymDim(static_cast<int64_t>(classes)) : SymDim()};
  }
  context.set_output(0, std::move(labels));
  context.set_output(1, std::move(scores));
  return ok();
}
}  // namespace

OPERATOR(LinearClassifier) = {
    .name = "LinearClassifier",
    .domain = "ai.onnx.ml",
    .doc = "class by the highest linear score",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs =
        {
            {"Y", "T2"},
            {"Z", "tensor(float)"},
        },
    .attributes =
        {
            {"classlabels_ints", Attr::kInts},
            {"classlabels_strings", Attr::kStrings},
            {"coefficients", required(Attr::kFloats)},
            {"intercepts", Attr::kFloats},
            {"multi_class", 0},
            {"post_transform", "NONE"},
        },
    .types =
        {
            {"T1", {{1, kFloats32 | kIndices}}},
            {"T2", {{1, kI64 | kStr}}},
        },
    .infer = infer_linear_classifier,
    .reference = run_linear_classifier,
};

}  // namespace tombolo::ops
