#pragma once

// The intrinsics of x86, for files and functions that carry their target.

#if !defined(__clang__)
// gcc 12 takes its own _mm512_undefined_* inside them for a mistake (gcc bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <cstdint>

namespace tombolo {

/// The first n of sixteen lanes: none, or all, where n is beyond.
inline __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1 << n) - 1);
}

}  // namespace tombolo
