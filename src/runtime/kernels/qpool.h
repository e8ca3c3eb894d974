#pragma once

// Rows of bytes for pools with channels last.

#include <cstdint>

namespace tombolo {

/// y[i] = the greatest of n rows at i.
void max_rows(const uint8_t* const* rows, int64_t n, int64_t count, bool is_signed, uint8_t* y);
/// sums[i] += the bytes of a row.
void add_row(const uint8_t* x, int64_t count, bool is_signed, int32_t* sums);
/// y = clamp(round((sums - zero) * scale) + y_zero)
void round_sums(const int32_t* sums, int64_t count, int32_t zero, float scale, int32_t y_zero,
                bool is_signed, uint8_t* y);
/// y = clamp(round((a - a_zero) * a_scale + (b - b_zero) * b_scale) + zero)
struct ByteSum {
  int32_t a_zero, b_zero, zero;
  float a_scale, b_scale;
  bool is_signed;
};
void add_bytes(const uint8_t* a, const uint8_t* b, int64_t count, const ByteSum& sum, uint8_t* y);

}  // namespace tombolo
