#pragma once

// The kernels of support-vector machines.

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "ops/kernels/ml.h"

namespace tombolo::ops {

struct SvmKernel {
  enum class Type : uint8_t { kLinear, kPoly, kRbf, kSigmoid };
  Type type = Type::kLinear;
  double gamma = 0, coef0 = 0, degree = 0;

  static Result<SvmKernel> read(const KernelContext& context) {
    SvmKernel kernel;
    const Text name = context.attributes.get_string("kernel_type", "LINEAR");
    if (name == "POLY")
      kernel.type = Type::kPoly;
    else if (name == "RBF")
      kernel.type = Type::kRbf;
    else if (name == "SIGMOID")
      kernel.type = Type::kSigmoid;
    else if (name != "LINEAR")
      return context.error("kernel_type \"" + std::string(name) + "\" is not known");
    const auto parameters = context.attributes.get_floats("kernel_params");
    if (!parameters.empty() && parameters.size() != 3)
      return context.error("kernel_params has " + std::to_string(parameters.size()) +
                           " values, needs 3");
    if (!parameters.empty()) {
      kernel.gamma = static_cast<double>(parameters[0]);
      kernel.coef0 = static_cast<double>(parameters[1]);
      kernel.degree = static_cast<double>(parameters[2]);
    }
    return kernel;
  }

  double operator()(const double* x, const float* vector, int64_t features) const {
    double sum = 0;
    for (int64_t i = 0; i < features; ++i) {
      const double v = static_cast<double>(vector[i]);
      sum += type == Type::kRbf ? (x[i] - v) * (x[i] - v) : x[i] * v;
    }
    switch (type) {
      case Type::kPoly:
        return std::pow(gamma * sum + coef0, degree);
      case Type::kSigmoid:
        return std::tanh(gamma * sum + coef0);
      case Type::kRbf:
        return std::exp(-gamma * sum);
      default:
        return sum;
    }
  }
};

/// SVMClassifier. The lists are those of the node's attributes.
struct SvmClassification {
  SvmKernel kernel;
  ClassLabels labels;
  PostTransform transform = PostTransform::kNone;
  std::span<const float> coefficients, vectors, rho, prob_a, prob_b;
  std::vector<int64_t> starts;  ///< of each class's vectors; the last entry counts them all
  size_t classes = 1;
  int64_t features = 0;

  bool linear() const { return starts.back() == 0; }
  bool probabilities() const { return !linear() && !prob_a.empty(); }
  size_t pairs() const { return classes * (classes - 1) / 2; }

  /// Calls score(pair, i, j) for each pair of classes i < j: what it gives decides for i if it is
  /// above zero. Then as `decide`.
  template <typename Score>
  int64_t decide_pairs(Score&& score, std::vector<double>& scores,
                       std::vector<double>& votes) const {
    scores.resize(pairs());
    votes.assign(classes, 0);
    size_t pair = 0;
    for (size_t i = 0; i < classes; ++i) {
      double won = votes[i];
      for (size_t j = i + 1; j < classes; ++j, ++pair) {
        scores[pair] = score(pair, i, j);
        const double above = scores[pair] > 0 ? 1 : 0;
        won += above;
        votes[j] += 1 - above;
      }
      votes[i] = won;
    }
    if (probabilities()) scores = class_probabilities(scores);
    return decide(scores, votes);
  }
  /// The number of the class that has most of `judged`. Scores become what is given out.
  int64_t decide(std::vector<double>& scores, std::span<const double> judged) const;

 private:
  std::vector<double> class_probabilities(const std::vector<double>& scores) const;
};
Result<SvmClassification> read_svm_classifier(const KernelContext& context, int64_t features);

}  // namespace tombolo::ops
