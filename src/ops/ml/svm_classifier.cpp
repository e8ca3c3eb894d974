#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/svm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_svm_classifier(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(const SvmClassification svm, read_svm_classifier(context, x.dim(1)));
  const auto count = static_cast<size_t>(svm.starts.back());
  std::vector<std::vector<double>> rows;
  std::vector<int64_t> numbers;
  std::vector<double> similar(count), votes;
  for (int64_t row = 0; row < x.dim(0); ++row) {
    const double* features = x.data<double>() + row * svm.features;
    std::vector<double> scores;
    if (svm.linear()) {
      for (size_t c = 0; c < svm.classes; ++c)
        scores.push_back(
            static_cast<double>(svm.rho[0]) +
            svm.kernel(features, svm.coefficients.data() + static_cast<int64_t>(c) * svm.features,
                       svm.features));
      votes = scores;
      numbers.push_back(svm.decide(scores, votes));
      rows.push_back(std::move(scores));
      continue;
    }
    for (size_t j = 0; j < count; ++j)
      similar[j] = svm.kernel(features, svm.vectors.data() + static_cast<int64_t>(j) * svm.features,
                              svm.features);
    const auto part = [&](size_t line, size_t of) {
      double sum = 0;
      for (auto v = static_cast<size_t>(svm.starts[of]);
           v < static_cast<size_t>(svm.starts[of + 1]); ++v)
        sum += static_cast<double>(svm.coefficients[line * count + v]) * similar[v];
      return sum;
    };
    const auto score = [&](size_t pair, size_t i, size_t j) {
      return static_cast<double>(svm.rho[pair]) + part(j - 1, i) + part(i, j);
    };
    numbers.push_back(svm.decide_pairs(score, scores, votes));
    rows.push_back(std::move(scores));
  }
  CHECK_OK(give_scores(context, 1, DType::kFloat32, rows, svm.labels.count()));
  return give_labels(context, svm.labels, numbers);
}

}  // namespace

namespace {
Status infer_svm_classifier(InferContext& context) {
  const bool strings = !context.attributes.get_strings("classlabels_strings").empty();
  const SymShape* x = context.shape(0);
  InferType labels = InferType::tensor(strings ? DType::kString : DType::kInt64);
  InferType scores = InferType::tensor(DType::kFloat32);
  if (x != nullptr) {
    const SymDim rows = x->size() == 2 ? (*x)[0] : x->size() == 1 ? SymDim(1) : SymDim();
    labels.shape = SymShape{rows};
    scores.shape = SymShape{rows, SymDim()};
  }
  context.set_output(0, std::move(labels));
  context.set_output(1, std::move(scores));
  return ok();
}
}  // namespace

OPERATOR(SVMClassifier) = {
    .name = "SVMClassifier",
    .domain = "ai.onnx.ml",
    .doc = "class by support vectors, with scores or probabilities",
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
            {"coefficients", Attr::kFloats},
            {"kernel_params", Attr::kFloats},
            {"kernel_type", "LINEAR"},
            {"post_transform", "NONE"},
            {"prob_a", Attr::kFloats},
            {"prob_b", Attr::kFloats},
            {"rho", Attr::kFloats},
            {"support_vectors", Attr::kFloats},
            {"vectors_per_class", Attr::kInts},
        },
    .types =
        {
            {"T1", {{1, kFloats32 | kIndices}}},
            {"T2", {{1, kI64 | kStr}}},
        },
    .infer = infer_svm_classifier,
    .reference = run_svm_classifier,
};

}  // namespace tombolo::ops
