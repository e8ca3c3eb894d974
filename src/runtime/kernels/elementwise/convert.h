#pragma once

// Rows of 16-bit floats to floats and back, to nearest even, as base/float_formats.h does it.

#include <cstdint>

namespace tombolo {

void f16_to_f32(const uint16_t* x, float* y, int64_t n);
void f32_to_f16(const float* x, uint16_t* y, int64_t n);
void bf16_to_f32(const uint16_t* x, float* y, int64_t n);
void f32_to_bf16(const float* x, uint16_t* y, int64_t n);

}  // namespace tombolo
