#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/svm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Probabilities of k classes from those of all pairs, pairs[i * k + j] = P(i | i or j): the second
/// method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise
/// Coupling" (2004), with LIBSVM's limits.
std::vector<double> couple_pairs(size_t k, const std::vector<double>& pairs) {
  std::vector<double> q(k * k), p(k, 1 / static_cast<double>(k)), qp(k);
  for (size_t t = 0; t < k; ++t)
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += pairs[j * k + t] * pairs[j * k + t];
      q[t * k + j] = -pairs[j * k + t] * pairs[t * k + j];
    }
  const size_t limit = std::max<size_t>(100, k);
  for (size_t round = 0; round < limit; ++round) {
    double pqp = 0, error = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (size_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (size_t t = 0; t < k; ++t) error = std::max(error, std::fabs(qp[t] - pqp));
    if (error < 0.005 / static_cast<double>(k)) break;
    for (size_t t = 0; t < k; ++t) {
      const double step = (pqp - qp[t]) / q[t * k + t];
      p[t] += step;
      pqp = (pqp + step * (step * q[t * k + t] + 2 * qp[t])) / (1 + step) / (1 + step);
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t * k + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}

struct Svm {
  SvmKernel kernel;
  std::span<const float> coefficients, vectors, rho, prob_a, prob_b;
  std::vector<int64_t> starts;  ///< of each class's vectors; the last entry counts them all
  size_t classes = 1;
  int64_t features = 0;

  bool linear() const { return starts.back() == 0; }
  bool probabilities() const { return !linear() && !prob_a.empty(); }

  /// One score for each pair of classes, and how many of its pairs each class wins.
  std::vector<double> pair_scores(const double* x, std::vector<double>& votes) const {
    const int64_t count = starts.back();
    std::vector<double> similar(static_cast<size_t>(count)), scores;
    for (int64_t j = 0; j < count; ++j)
      similar[static_cast<size_t>(j)] = kernel(x, vectors.data() + j * features, features);
    votes.assign(classes, 0);
    const auto part = [&](size_t row, size_t of) {
      double sum = 0;
      for (int64_t v = starts[of]; v < starts[of + 1]; ++v)
        sum += static_cast<double>(
                   coefficients[row * static_cast<size_t>(count) + static_cast<size_t>(v)]) *
               similar[static_cast<size_t>(v)];
      return sum;
    };
    for (size_t i = 0; i < classes; ++i)
      for (size_t j = i + 1; j < classes; ++j) {
        const double score = static_cast<double>(rho[scores.size()]) + part(j - 1, i) + part(i, j);
        scores.push_back(score);
        votes[score > 0 ? i : j] += 1;
      }
    return scores;
  }

  std::vector<double> class_probabilities(const std::vector<double>& scores) const {
    std::vector<double> pairs(classes * classes);
    size_t at = 0;
    for (size_t i = 0; i < classes; ++i)
      for (size_t j = i + 1; j < classes; ++j, ++at) {
        const double x =
            scores[at] * static_cast<double>(prob_a[at]) + static_cast<double>(prob_b[at]);
        const double p = std::clamp(1 / (1 + std::exp(x)), 1e-7, 1 - 1e-7);
        pairs[i * classes + j] = p;
        pairs[j * classes + i] = 1 - p;
      }
    return couple_pairs(classes, pairs);
  }
};

Result<Svm> read_svm(const KernelContext& context, const ClassLabels& labels, int64_t features) {
  Svm svm;
  TRY(svm.kernel, SvmKernel::read(context));
  const AttributeReader& attributes = context.attributes;
  svm.coefficients = attributes.get_floats("coefficients");
  svm.vectors = attributes.get_floats("support_vectors");
  svm.rho = attributes.get_floats("rho");
  svm.prob_a = attributes.get_floats("prob_a");
  svm.prob_b = attributes.get_floats("prob_b");
  svm.features = features;
  svm.classes = static_cast<size_t>(std::max<int64_t>(labels.count(), 1));
  const auto limit = static_cast<int64_t>(svm.vectors.size());
  svm.starts = {0};
  for (int64_t count : attributes.get_ints("vectors_per_class")) {
    if (count < 0 || count > limit - svm.starts.back())
      return context.error("vectors_per_class has the value " + std::to_string(count));
    svm.starts.push_back(svm.starts.back() + count);
  }
  const auto vectors = static_cast<size_t>(svm.starts.back());
  const size_t pairs = svm.classes * (svm.classes - 1) / 2;
  bool fits = !svm.rho.empty() && features > 0;
  if (vectors == 0) {
    svm.kernel.type = SvmKernel::Type::kLinear;
    fits = fits && svm.coefficients.size() >= svm.classes * static_cast<size_t>(features);
  } else {
    fits = fits && svm.starts.size() == svm.classes + 1 && svm.rho.size() >= pairs &&
           svm.vectors.size() / static_cast<size_t>(features) >= vectors &&
           svm.coefficients.size() / vectors + 1 >= svm.classes;
    fits =
        fits && (svm.prob_a.empty() || (svm.prob_a.size() >= pairs && svm.prob_b.size() >= pairs));
  }
  if (!fits)
    return context.error("the attributes do not fit " + std::to_string(svm.classes) +
                         " classes and " + std::to_string(features) + " features");
  return svm;
}

Status run_svm_classifier(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(const ClassLabels labels, read_labels(context, "classlabels_ints", "classlabels_strings"));
  TRY(const PostTransform transform, read_post_transform(context));
  TRY(const Svm svm, read_svm(context, labels, x.dim(1)));
  std::vector<std::vector<double>> rows;
  std::vector<int64_t> numbers;
  for (int64_t row = 0; row < x.dim(0); ++row) {
    const double* features = x.data<double>() + row * svm.features;
    std::vector<double> votes, scores;
    if (svm.linear()) {
      for (size_t c = 0; c < svm.classes; ++c)
        scores.push_back(
            static_cast<double>(svm.rho[0]) +
            svm.kernel(features, svm.coefficients.data() + static_cast<int64_t>(c) * svm.features,
                       svm.features));
    } else {
      scores = svm.pair_scores(features, votes);
      if (svm.probabilities()) scores = svm.class_probabilities(scores);
    }
    const std::vector<double>& judged = votes.empty() ? scores : votes;
    const int64_t best = greatest(judged);
    int64_t number = best;
    SecondClass second = SecondClass::kNone;
    if (svm.rho.size() == 1) {
      const double most = judged[static_cast<size_t>(best)];
      if (labels.count() == 2) {
        second = SecondClass::kOpposite;
      } else {
        number = most > 0 ? 1 : 0;
      }
    }
    numbers.push_back(number);
    if (scores.size() == 1) {
      rows.push_back(class_scores(transform, scores[0], second));
    } else {
      transform_scores(transform, scores);
      rows.push_back(std::move(scores));
    }
  }
  CHECK_OK(give_scores(context, 1, DType::kFloat32, rows, labels.count()));
  return give_labels(context, labels, numbers);
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
