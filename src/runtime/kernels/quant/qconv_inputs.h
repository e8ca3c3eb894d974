#pragma once

// Inputs of QLinearConv, in whichever layout and domain.

#include <cstddef>
#include <cstdint>

#include "ir/tensor.h"

namespace tombolo {

inline constexpr size_t kX = 0, kXScale = 1, kXZero = 2, kW = 3, kWScale = 4, kWZero = 5,
                        kYScale = 6, kYZero = 7, kBias = 8;

/// The first element of a tensor of bytes.
inline int32_t first_code(const Tensor& tensor) {
  return tensor.dtype() == DType::kInt8 ? tensor.data<int8_t>()[0] : tensor.data<uint8_t>()[0];
}

}  // namespace tombolo
