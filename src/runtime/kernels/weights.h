#pragma once

// Constant weights of 16 or 32 bits, as floats for packing: models in float16 and bfloat16 are
// computed in float32 and keep their weights as the file has them.

#include <cstring>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {

/// Input `index` is float32, or a constant of 16 bits.
inline bool is_weight(const KernelQuery& query, size_t index) {
  return query.dtype(index) == DType::kFloat32 ||
         (is_short_float(query.dtype(index)) && query.constant(index) != nullptr);
}

/// The first two inputs and what else is given are float32, but that input 1 may be such a weight.
inline bool takes_floats_and_weight(const KernelQuery& query) {
  for (size_t i = 0; i < query.inputs.size(); ++i)
    if ((query.has_input(i) || i < 2) &&
        (i == 1 ? !is_weight(query, 1) : query.dtype(i) != DType::kFloat32))
      return false;
  return true;
}

/// A weight of a model in halves: it has 16 bits, or had them before it was scaled.
inline bool is_of_halves(const Tensor& weight) {
  return is_short_float(weight.dtype()) ||
         (weight.deferred() != nullptr && is_short_float(weight.deferred()->source_dtype()));
}

/// Elements [at, at + n) of a constant at any address, as floats: in `room` unless they are floats
/// already, which may then lie at any address, too.
inline const float* weight_floats(const Tensor& tensor, int64_t at, int64_t n,
                                  std::vector<float>& room) {
  if (tensor.dtype() == DType::kFloat32) return tensor.data<float>() + at;
  constexpr int64_t kPart = 4096;
  room.resize(static_cast<size_t>(n));
  uint16_t part[kPart];
  for (int64_t i = 0; i < n; i += kPart) {
    const int64_t count = std::min(kPart, n - i);
    std::memcpy(part, tensor.data<std::byte>() + (at + i) * 2, static_cast<size_t>(count) * 2);
    widen_short(tensor.dtype(), part, room.data() + i, count);
  }
  return room.data();
}

}  // namespace tombolo
