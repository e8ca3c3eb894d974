#include "ops/kernels/svm.h"

#include <algorithm>

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

}  // namespace

std::vector<double> SvmClassification::class_probabilities(
    const std::vector<double>& scores) const {
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

int64_t SvmClassification::decide(std::vector<double>& scores,
                                  std::span<const double> judged) const {
  int64_t number = greatest(judged);
  SecondClass second = SecondClass::kNone;
  if (rho.size() == 1) {
    if (labels.count() == 2)
      second = SecondClass::kOpposite;
    else
      number = judged[static_cast<size_t>(number)] > 0 ? 1 : 0;
  }
  if (scores.size() == 1)
    class_scores(transform, scores[0], second, scores);
  else
    transform_scores(transform, scores);
  return number;
}

Result<SvmClassification> read_svm_classifier(const KernelContext& context, int64_t features) {
  SvmClassification svm;
  TRY(svm.labels, read_labels(context, "classlabels_ints", "classlabels_strings"));
  TRY(svm.transform, read_post_transform(context));
  TRY(svm.kernel, SvmKernel::read(context));
  const AttributeReader& attributes = context.attributes;
  svm.coefficients = attributes.get_floats("coefficients");
  svm.vectors = attributes.get_floats("support_vectors");
  svm.rho = attributes.get_floats("rho");
  svm.prob_a = attributes.get_floats("prob_a");
  svm.prob_b = attributes.get_floats("prob_b");
  svm.features = features;
  svm.classes = static_cast<size_t>(std::max<int64_t>(svm.labels.count(), 1));
  const auto limit = static_cast<int64_t>(svm.vectors.size());
  svm.starts = {0};
  for (int64_t count : attributes.get_ints("vectors_per_class")) {
    if (count < 0 || count > limit - svm.starts.back())
      return context.error("vectors_per_class has the value " + std::to_string(count));
    svm.starts.push_back(svm.starts.back() + count);
  }
  const auto vectors = static_cast<size_t>(svm.starts.back());
  const size_t pairs = svm.pairs();
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

}  // namespace tombolo::ops
