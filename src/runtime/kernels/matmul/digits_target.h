#pragma once

// What files of digits (gemm_digits.h) share, where the processor is x86.

#include <bit>
#include <cstdint>

#include "runtime/kernels/intrinsics.h"

#define TOMBOLO_DIGITS __attribute__((target("avx512f,avx512bw,avx512dq,amx-tile,amx-int8")))
#define TOMBOLO_DIGITS_INLINE TOMBOLO_DIGITS __attribute__((always_inline)) inline

namespace tombolo {

inline constexpr int64_t kDigitTile = 1024;  ///< bytes: 16 lines of 64
inline constexpr int64_t kDigits = 4;
inline constexpr int64_t kStepBytes = kDigits * kDigitTile;
inline constexpr int kIntegerBits = 30;
inline constexpr int kHighest = 6;  ///< the highest digit counts 2^(exponent - 6): a scale

inline float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

}  // namespace tombolo
