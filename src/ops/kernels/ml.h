#pragma once

// What the operators of ai.onnx.ml share: rows of features, class labels, score transforms.

#include <algorithm>
#include <span>
#include <vector>

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// Input `index` as rows of features in double: [N, F] as it is, [F] as one row.
Result<Tensor> feature_rows(const KernelContext& context, size_t index);

/// The class labels of a classifier, as attributes of either type.
struct ClassLabels {
  std::span<const int64_t> ints;
  std::span<const Text> strings;
  int64_t count() const {
    return static_cast<int64_t>(ints.empty() ? strings.size() : ints.size());
  }
};
Result<ClassLabels> read_labels(const KernelContext& context, const char* ints_name,
                                const char* strings_name);
/// Gives the labels with these numbers as output 0. A number that has no label stands for itself
/// (or, in text, for nothing).
Status give_labels(KernelContext& context, const ClassLabels& labels,
                   std::span<const int64_t> numbers);

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
/// The attribute post_transform, by name.
Result<PostTransform> read_post_transform(const KernelContext& context);
void transform_scores(PostTransform transform, std::span<double> scores);

/// How the one score of a classifier with two classes becomes two. As in ONNX Runtime, only
/// LOGISTIC (which makes both the same) and PROBIT (which makes neither) transform it.
enum class SecondClass : uint8_t {
  kNone,        ///< it does not
  kComplement,  ///< the score is a probability: [1 - s, s]
  kOpposite,    ///< [-s, s]
};
void class_scores(PostTransform transform, double score, SecondClass second,
                  std::vector<double>& scores);

/// The number of the greatest; the first of equals.
inline int64_t greatest(std::span<const double> scores) {
  return scores.empty() ? 0 : std::max_element(scores.begin(), scores.end()) - scores.begin();
}

/// Gives rows of scores, all of one length, as output `index` of type `dtype`.
Status give_scores(KernelContext& context, size_t index, DType dtype,
                   const std::vector<std::vector<double>>& rows, size_t columns = 0);

/// One of `name`_tensor, `name`_strings, `name`_int64s and `name`_floats, as a vector.
Result<Tensor> read_list(const KernelContext& context, const char* name);
/// A tensor attribute as a dense, aligned tensor; undefined when absent.
Result<Tensor> read_tensor(const KernelContext& context, const char* name);
/// `name`, or `name`_as_tensor, as numbers.
Result<std::vector<double>> read_numbers(const KernelContext& context, const char* name);

}  // namespace tombolo::ops
