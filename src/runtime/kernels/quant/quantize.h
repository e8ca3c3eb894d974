#pragma once

// Rows of floats to bytes and back.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tombolo {

/// How DynamicQuantizeLinear takes numbers of a range that holds zero to uint8_t.
struct DynamicScale {
  float scale;
  int32_t zero;
};
inline DynamicScale dynamic_scale(float least, float greatest) {
  const float scale = greatest == least ? 1 : (greatest - least) / 255;
  const float origin = std::nearbyint(-least / scale);
  return {scale, static_cast<int32_t>(origin >= 0 ? std::min(origin, 255.0f) : 0)};
}

/// y = round(x / scale) + zero, limited to what int8_t or uint8_t holds; NaN counts as 0.
void quantize_row(const float* x, int64_t n, float scale, int32_t zero, bool is_signed, uint8_t* y);
/// The same for int16_t or uint16_t.
void quantize_row16(const float* x, int64_t n, float scale, int32_t zero, bool is_signed,
                    uint16_t* y);
/// Takes n numbers into [least, greatest]; NaN changes nothing.
void value_range(const float* x, int64_t n, float& least, float& greatest);
/// y = (x - zero) * scale
void dequantize_row(const void* x, bool is_signed, int64_t n, float scale, int32_t zero, float* y);
/// The same for int16_t or uint16_t.
void dequantize_row16(const void* x, bool is_signed, int64_t n, float scale, int32_t zero,
                      float* y);
/// y = (x - zero) * scale for sums of 32 bits.
void dequantize_sums(const int32_t* x, int64_t n, float scale, int32_t zero, float* y);

/// Adds what codes, and their squares, sum to in each of `columns`, over `rows` that lie one behind
/// the other: at most kMostSummed.
inline constexpr int64_t kMostSummed = 65536;
void sum_codes(const uint8_t* x, bool is_signed, int64_t rows, int64_t columns, int64_t* sums,
               int64_t* squares);

/// Codes of one scale as codes of another, by a factor and a shift for each element.
struct CodeAffine {
  const float* factor;
  const float* shift;
  bool x_signed, y_signed;
  int32_t zero, low, high;  ///< of y
};
/// y = round(x * factor + shift) + zero, within low and high; `each`: element i has numbers i of
/// both, else all have the first ones.
void affine_row(const CodeAffine& affine, bool each, const uint8_t* x, int64_t n, uint8_t* y);

}  // namespace tombolo
