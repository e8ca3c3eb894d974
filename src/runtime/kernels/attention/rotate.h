#pragma once

#include <cstdint>

namespace tombolo {

/// to = from, `count` vectors with the first 2 * half of their `size` features turned: pairs (a, b)
/// become (a cos - b sin, a sin + b cos), by the angles of rows[i] of `half` each. Pairs are
/// neighbours where interleaved, else half apart.
void rotate_rows(const float* from, float* to, int64_t count, int64_t size, int64_t half,
                 const float* cosine, const float* sine, const int64_t* rows, bool interleaved);
inline void rotate_row(const float* from, float* to, int64_t size, int64_t half,
                       const float* cosine, const float* sine, bool interleaved) {
  const int64_t row = 0;
  rotate_rows(from, to, 1, size, half, cosine, sine, &row, interleaved);
}

}  // namespace tombolo
