#include "runtime/kernels/ml/ml_setting.h"

#include <algorithm>
#include <utility>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/ml/linear_scores.h"
#include "runtime/kernels/ml/ml_rows.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {

bool has_feature_rows(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || !q.has_input(0)) return false;
  const DType dtype = q.dtype(0);
  return (dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt64 ||
          dtype == DType::kInt32) &&
         q.dims(0).size() == 2 && element_count(q.dims(0)) > 0;
}

bool known_transform(const KernelQuery& q, ops::PostTransform& transform) {
  const Text name = q.attributes.get_string("post_transform", "NONE");
  constexpr std::pair<std::string_view, ops::PostTransform> kNames[] = {
      {"NONE", ops::PostTransform::kNone},
      {"SOFTMAX", ops::PostTransform::kSoftmax},
      {"LOGISTIC", ops::PostTransform::kLogistic},
      {"SOFTMAX_ZERO", ops::PostTransform::kSoftmaxZero},
      {"PROBIT", ops::PostTransform::kProbit}};
  for (const auto& [known, value] : kNames)
    if (name == known) {
      transform = value;
      return true;
    }
  return false;
}

void widen_features(const Tensor& x, int64_t begin, int64_t count, double* to) {
  switch (x.dtype()) {
    case DType::kFloat32:
      return widen_floats(x.data<float>() + begin, count, to);
    case DType::kInt64:
      return widen_longs(x.data<int64_t>() + begin, count, to);
    case DType::kInt32:
      std::copy_n(x.data<int32_t>() + begin, count, to);
      return;
    default:
      std::copy_n(x.data<double>() + begin, count, to);
  }
}

bool vectors_have(ops::PostTransform transform) {
  return transform == ops::PostTransform::kNone || transform == ops::PostTransform::kLogistic ||
         transform == ops::PostTransform::kSoftmax;
}

void give_score_columns(ops::PostTransform transform, float* scores, int64_t targets, int64_t rows,
                        float* to) {
  if (transform == ops::PostTransform::kSoftmax) softmax_scores(scores, targets);
  if (transform == ops::PostTransform::kLogistic) logistic_scores(scores, targets);
  transpose_tile(reinterpret_cast<const std::byte*>(scores), kLinearRows,
                 reinterpret_cast<std::byte*>(to), targets, targets, rows, sizeof(float));
}

int64_t ml_grain(int64_t work) {
  return std::max<int64_t>(1, (1 << 17) / std::max<int64_t>(1, work));
}

}  // namespace tombolo
