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

/// Floats [plane][channels] to [channels][plane].
inline void turn_channels_first(const KernelRun& run, const float* x, int64_t plane,
                                int64_t channels, float* turned) {
  constexpr int64_t kStrip = 64;
  run.parallel_for((plane + kStrip - 1) / kStrip, std::max<int64_t>(1, 256 / channels),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t strip = begin; strip < end; ++strip) {
                       const int64_t first = strip * kStrip;
                       transpose_tile(reinterpret_cast<const std::byte*>(x + first * channels),
                                      channels, reinterpret_cast<std::byte*>(turned + first), plane,
                                      std::min(kStrip, plane - first), channels, 4);
                     }
                   });
}

}  // namespace tombolo
