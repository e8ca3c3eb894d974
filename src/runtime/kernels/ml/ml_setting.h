#pragma once

// What the rows of ai.onnx.ml share: which inputs they take, and reading those as doubles.

#include "ops/kernels/ml.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {

/// [N, F] of a type of numbers that the operators take, with something in it.
bool has_feature_rows(const KernelQuery& q);
/// The attribute post_transform; false where it is none that is known.
bool known_transform(const KernelQuery& q, ops::PostTransform& transform);
/// Elements [begin, begin + count) of such an input.
void widen_features(const Tensor& x, int64_t begin, int64_t count, double* to);
/// Whether give_score_columns() has this transform.
bool vectors_have(ops::PostTransform transform);
/// Columns of scores (linear_scores.h), transformed in place, as rows of `targets` from `to` on.
void give_score_columns(ops::PostTransform transform, float* scores, int64_t targets, int64_t rows,
                        float* to);
/// How many pieces of so many products are worth a thread.
int64_t ml_grain(int64_t work);

}  // namespace tombolo
