#pragma once

// Elements of float tensors of 16 or 32 bits, a block at a time, as floats: what lets one kernel of
// floats serve the three types. Each operator rounds its result once, as the reference does.

#include <cstring>

#include "ir/tensor.h"
#include "runtime/kernels/elementwise/convert.h"

namespace tombolo {

inline constexpr int64_t kBlockFloats = 1024;

inline bool is_f32_or_short(DType dtype) {
  return dtype == DType::kFloat32 || is_short_float(dtype);
}

/// Floats of 16 bits, of either type, as floats.
inline void widen_short(DType dtype, const uint16_t* x, float* y, int64_t n) {
  dtype == DType::kFloat16 ? f16_to_f32(x, y, n) : bf16_to_f32(x, y, n);
}

/// Elements [at, at + n) as floats: where they lie, or converted into `room`.
inline const float* load_floats(const Tensor& tensor, int64_t at, int64_t n, float* room) {
  if (tensor.dtype() == DType::kFloat32) return tensor.data<float>() + at;
  widen_short(tensor.dtype(), tensor.data<uint16_t>() + at, room, n);
  return room;
}
/// Where to put elements [at, at + n): the tensor itself, or `room`, from which store() takes them.
inline float* floats_to_fill(Tensor& tensor, int64_t at, float* room) {
  return tensor.dtype() == DType::kFloat32 ? tensor.data<float>() + at : room;
}
inline void store_floats(const float* x, int64_t n, Tensor& tensor, int64_t at) {
  switch (tensor.dtype()) {
    case DType::kFloat16:
      return f32_to_f16(x, tensor.data<uint16_t>() + at, n);
    case DType::kBFloat16:
      return f32_to_bf16(x, tensor.data<uint16_t>() + at, n);
    default:
      if (x != tensor.data<float>() + at)
        std::memcpy(tensor.data<float>() + at, x, static_cast<size_t>(n) * sizeof(float));
  }
}

}  // namespace tombolo
