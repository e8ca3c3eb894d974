#pragma once

// What every use of AMX's tiles needs.

#include <cstdint>

namespace tombolo {

/// How tiles are set up: what LDTILECFG reads (Intel 64 and IA-32 Architectures Software
/// Developer's Manual, volume 2).
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};

}  // namespace tombolo

// The compiler does not know that tile instructions read and write memory.
#define TOMBOLO_AMX_FENCE() __asm__ volatile("" ::: "memory")

#ifdef TOMBOLO_EMULATE_AMX
#include "runtime/kernels/amx_emulated.h"
#endif
