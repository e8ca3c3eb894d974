#include "ops/kernels/ml.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tombolo::ops {

Result<Tensor> feature_rows(const KernelContext& context, size_t index) {
  TRY(const Tensor* x, context.input(index));
  if (x->rank() != 1 && x->rank() != 2)
    return context.error("the features must be [N, F] or [F], are " + to_string(*x));
  TRY(Tensor rows, as<double>(context, *x));
  if (rows.rank() == 1) return rows.reshaped({{1, rows.dim(0)}});
  return rows;
}

Result<ClassLabels> read_labels(const KernelContext& context, const char* ints_name,
                                const char* strings_name) {
  ClassLabels labels{context.attributes.get_ints(ints_name),
                     context.attributes.get_strings(strings_name)};
  if (!labels.ints.empty() && !labels.strings.empty())
    return context.error(std::string("both ") + ints_name + " and " + strings_name + " are given");
  return labels;
}

Status give_labels(KernelContext& context, const ClassLabels& labels,
                   std::span<const int64_t> numbers) {
  const int64_t dims[] = {static_cast<int64_t>(numbers.size())};
  const bool text = !labels.strings.empty();
  TRY(Tensor * y, context.output(0, text ? DType::kString : DType::kInt64, dims));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool known = numbers[i] >= 0 && numbers[i] < labels.count();
    const auto at = static_cast<size_t>(numbers[i]);
    if (text)
      y->strings()[i] = known ? std::string(labels.strings[at]) : std::string();
    else
      y->data<int64_t>()[i] = known ? labels.ints[at] : numbers[i];
  }
  return ok();
}

Result<PostTransform> read_post_transform(const KernelContext& context) {
  const Text name = context.attributes.get_string("post_transform", "NONE");
  if (name == "NONE") return PostTransform::kNone;
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  return context.error("post_transform \"" + std::string(name) + "\" is not known");
}

namespace {

/// Winitzki's approximation of the inverse error function, which ONNX Runtime and the reference
/// implementation use: an exact one would disagree with the models' own tests.
double inverse_erf(double x) {
  const double rest = (1 - x) * (1 + x);
  if (rest == 0) return 0;
  const double log = std::log(rest);
  const double half = 2 / (3.14159265358979323846 * 0.147) + 0.5 * log;
  const double root = std::sqrt(std::sqrt(half * half - log / 0.147) - half);
  return x < 0 ? -root : root;
}

}  // namespace

void transform_scores(PostTransform transform, std::span<double> scores) {
  if (scores.empty() || transform == PostTransform::kNone) return;
  if (transform == PostTransform::kLogistic) {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
    return;
  }
  if (transform == PostTransform::kProbit) {
    for (double& score : scores) score = 1.41421356 * inverse_erf(2 * score - 1);
    return;
  }
  // SOFTMAX_ZERO keeps (nearly) what is zero: it counts as no score.
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    const bool zero = transform == PostTransform::kSoftmaxZero && std::fabs(score) <= 1e-7;
    score = zero ? score * std::exp(-most) : std::exp(score - most);
    sum += score;
  }
  for (double& score : scores) score = sum == 0 ? 0.5 : score / sum;
}

void class_scores(PostTransform transform, double score, SecondClass second,
                  std::vector<double>& scores) {
  scores.assign(1, score);
  const bool logistic = transform == PostTransform::kLogistic;
  if (second != SecondClass::kNone && transform != PostTransform::kProbit) {
    const bool complement = second == SecondClass::kComplement && !logistic;
    scores.insert(scores.begin(), complement ? 1 - score : -score);
  }
  if (logistic || transform == PostTransform::kProbit) transform_scores(transform, scores);
}

Status give_scores(KernelContext& context, size_t index, DType dtype,
                   const std::vector<std::vector<double>>& rows, size_t columns) {
  if (!rows.empty()) columns = rows[0].size();
  TRY(Tensor scores, context.allocate(DType::kFloat64, {{static_cast<int64_t>(rows.size()),
                                                         static_cast<int64_t>(columns)}}));
  double* to = scores.data<double>();
  for (const std::vector<double>& row : rows) to = std::copy(row.begin(), row.end(), to);
  return give(context, index, dtype, std::move(scores));
}

Result<Tensor> read_tensor(const KernelContext& context, const char* name) {
  const Constant* constant = context.attributes.get_tensor(name);
  if (constant == nullptr) return Tensor();
  TRY(Tensor tensor, constant->value(context.node.graph().storage_ptr()));
  return tensor.aligned() ? Result<Tensor>(std::move(tensor)) : tensor.clone();
}

Result<Tensor> read_list(const KernelContext& context, const char* name) {
  const std::string prefix(name);
  TRY(Tensor tensor, read_tensor(context, (prefix + "_tensor").c_str()));
  if (!absent(tensor)) return tensor.reshaped({{tensor.size()}});
  const auto strings = context.attributes.get_strings(prefix + "_strings");
  if (!strings.empty()) {
    std::vector<std::string> copies(strings.begin(), strings.end());
    const int64_t dims[] = {static_cast<int64_t>(copies.size())};
    return Tensor::of_strings(dims, std::move(copies));
  }
  const auto ints = context.attributes.get_ints(prefix + "_int64s");
  if (!ints.empty()) return Tensor::int64s(ints);
  const auto floats = context.attributes.get_floats(prefix + "_floats");
  const int64_t dims[] = {static_cast<int64_t>(floats.size())};
  return Tensor::of<float>(DType::kFloat32, dims, floats);
}

Result<std::vector<double>> read_numbers(const KernelContext& context, const char* name) {
  std::vector<double> numbers;
  TRY(Tensor tensor, read_tensor(context, (std::string(name) + "_as_tensor").c_str()));
  if (!absent(tensor)) {
    if (is_string(tensor.dtype()) || is_complex(tensor.dtype()))
      return context.error(std::string(name) + "_as_tensor must hold numbers");
    for (int64_t i = 0; i < tensor.size(); ++i) numbers.push_back(tensor.get_double(i));
    return numbers;
  }
  for (float number : context.attributes.get_floats(name))
    numbers.push_back(static_cast<double>(number));
  return numbers;
}

}  // namespace tombolo::ops
