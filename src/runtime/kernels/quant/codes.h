#pragma once

// What kernels on codes read from their nodes.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/kernel.h"

namespace tombolo {

/// Inputs of QLinearConv, in whichever layout and domain.
inline constexpr size_t kX = 0, kXScale = 1, kXZero = 2, kW = 3, kWScale = 4, kWZero = 5,
                        kYScale = 6, kYZero = 7, kBias = 8;

/// What codes are written: attributes `low` and `high`, else all that the type has.
struct CodeLimits {
  DType type = DType::kUInt8;
  int32_t low = 0, high = 255;
};
inline CodeLimits read_limits(const KernelQuery& q, DType type) {
  const bool is_signed = type == DType::kInt8;
  return {type, static_cast<int32_t>(q.attributes.get_int("low", is_signed ? -128 : 0)),
          static_cast<int32_t>(q.attributes.get_int("high", is_signed ? 127 : 255))};
}

/// The first element of a tensor of bytes.
inline int32_t first_code(const Tensor& tensor) {
  return tensor.dtype() == DType::kInt8 ? tensor.data<int8_t>()[0] : tensor.data<uint8_t>()[0];
}

}  // namespace tombolo
