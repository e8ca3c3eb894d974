#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {

/// Floats [n][channels][plane] to [n][plane][channels].
inline void turn_channels_last(const KernelRun& run, const Tensor& x, int64_t plane,
                               float* turned) {
  const int64_t channels = x.dim(1);
  const auto* from = x.data<std::byte>();
  constexpr int64_t kStrip = 64;
  const int64_t strips = (plane + kStrip - 1) / kStrip;
  run.parallel_for(x.dim(0) * strips, 4, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / strips, first = task % strips * kStrip;
      transpose_tile(from + (n * channels * plane + first) * 4, plane,
                     reinterpret_cast<std::byte*>(turned + (n * plane + first) * channels),
                     channels, channels, std::min(kStrip, plane - first), 4);
    }
  });
}

}  // namespace tombolo
