#pragma once

// AVX-512's bf16, for files of intrinsics where the processor is x86. Functions carry their target.

#include <cstdint>

#include "runtime/kernels/intrinsics.h"

#define TOMBOLO_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace tombolo {

/// The first n lanes, or all sixteen.
inline __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : (1 << n) - 1);
}

}  // namespace tombolo
