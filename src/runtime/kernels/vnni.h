#pragma once

// AVX-512's dot products of bytes (VNNI), which Highway does not know yet, for files of intrinsics
// where the processor is x86. Functions carry their target.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/intrinsics.h"

#define TOMBOLO_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define TOMBOLO_VNNI_INLINE TOMBOLO_VNNI inline __attribute__((always_inline))

namespace tombolo {

/// sum += the products of four unsigned bytes and four signed ones, in each of 32 bits. In
/// assembly: gcc otherwise copies each sum before and after, or keeps those on the stack that do
/// not begin at 0.
TOMBOLO_VNNI_INLINE void add_byte_products(__m512i& sum, __m512i unsigned_bytes,
                                           __m512i signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
}

/// From any address.
inline int32_t word_at(const std::byte* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}
inline float float_at(const std::byte* p) {
  float number;
  __builtin_memcpy(&number, p, sizeof number);
  return number;
}

}  // namespace tombolo
