#pragma once

// Rotation of pairs of features, as the rotary embeddings of com.microsoft have it.

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// One head's features in place: the first 2 * half turn by the angles given as cosines and sines.
/// Interleaved pairs are neighbours, others lie half the width apart.
template <typename T>
void rotate_features(T* x, int64_t half, const T* cosine, const T* sine, bool interleaved) {
  for (int64_t i = 0; i < half; ++i) {
    T& a = x[interleaved ? 2 * i : i];
    T& b = x[interleaved ? 2 * i + 1 : half + i];
    const T left = a, right = b;
    a = left * cosine[i] - right * sine[i];
    b = left * sine[i] + right * cosine[i];
  }
}

/// [batch, heads, steps, size] in place, the first `width` features by the angles
/// position / 10000^(2 i / width); positions count from `first`.
template <typename T>
Status rotate_by_position(const KernelContext& context, Tensor& x, int64_t width, int64_t first);

extern template Status rotate_by_position<float>(const KernelContext&, Tensor&, int64_t, int64_t);
extern template Status rotate_by_position<double>(const KernelContext&, Tensor&, int64_t, int64_t);

}  // namespace tombolo::ops
