#pragma once

// The intrinsics of x86, for files and functions that carry their target.

#if !defined(__clang__)
// gcc 12 takes its own _mm512_undefined_* inside them for a mistake (gcc bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
