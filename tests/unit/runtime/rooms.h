#pragma once

#include <algorithm>
#include <limits>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

/// Fills what this thread has of thread_floats() with what is no number: whoever reads there what
/// it has not written is found out.
inline void spoil_rooms() {
  constexpr size_t kFloats = 1 << 15;
  for (int slot = 0; slot < kThreadRooms; ++slot)
    std::fill_n(thread_floats(slot, kFloats), kFloats, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace tombolo
