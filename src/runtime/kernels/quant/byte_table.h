#pragma once

#include <cstdint>

namespace tombolo {

/// y[i] = table[x[i]], of 256 bytes.
void look_up_bytes(const uint8_t* table, const uint8_t* x, int64_t n, uint8_t* y);

}  // namespace tombolo
