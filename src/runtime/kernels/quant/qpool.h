#pragma once

// Rows of bytes for pools, sums and products of quantised values.

#include <cstdint>

namespace tombolo {

/// y[i] = the greatest of n rows at i.
void max_rows(const uint8_t* const* rows, int64_t n, int64_t count, bool is_signed, uint8_t* y);
/// The sum of `count` bytes.
int64_t sum_bytes(const uint8_t* x, int64_t count, bool is_signed);
/// sums[i] += the bytes of n rows at i.
void add_rows(const uint8_t* const* rows, int64_t n, int64_t count, bool is_signed, int32_t* sums);
/// y = clamp(round((sums - zero) * scale) + y_zero)
void round_sums(const int32_t* sums, int64_t count, int32_t zero, float scale, int32_t y_zero,
                bool is_signed, uint8_t* y);
/// y = clamp(round((a - a_zero) * a_scale + (b - b_zero) * b_scale) + zero)
/// or, of a product, y = clamp(round((a - a_zero) * (b - b_zero) * a_scale) + zero)
struct ByteSum {
  int32_t a_zero, b_zero, zero;
  float a_scale, b_scale;
  bool is_signed;
  bool product = false;
};
void add_bytes(const uint8_t* a, const uint8_t* b, int64_t count, const ByteSum& sum, uint8_t* y);
/// The same sum, no product, with b the same for all.
void add_one_byte(const uint8_t* a, uint8_t b, int64_t count, const ByteSum& sum, uint8_t* y);

}  // namespace tombolo
