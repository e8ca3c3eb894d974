#pragma once

// Lines along one axis of a tensor.

#include <cstdint>
#include <span>

#include "runtime/kernels/kernel.h"

namespace tombolo {

/// The axis as [outer][length][inner].
struct AxisLines : KernelState {
  int64_t outer = 1, length = 1, inner = 1;
};
/// False where there is nothing along the axis, or more than a place of 32 bits can name.
inline bool read_lines(std::span<const int64_t> dims, int64_t axis, AxisLines& s) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  s.outer = element_count(dims.first(static_cast<size_t>(axis)));
  s.length = dims[static_cast<size_t>(axis)];
  s.inner = element_count(dims.subspan(static_cast<size_t>(axis) + 1));
  return s.outer > 0 && s.length > 0 && s.inner > 0 && s.length < INT32_MAX;
}

}  // namespace tombolo
