#pragma once

// Elements of a few bytes picked from a row, in whole vectors: what nearest neighbours are where
// rows are not picked by 32-bit lanes (resample.h).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tombolo {

/// Sixteen bytes of the result each are shuffled from `parts` times as many bytes of the input, the
/// last of them reaching back.
struct BytePicks {
  static constexpr int64_t kBlock = 16;
  static constexpr int kMaxParts = 2;
  int parts = 0;
  int64_t bytes = 0;              ///< of the result
  std::vector<int32_t> base;      ///< of each block: where its bytes begin in the input
  std::vector<uint8_t> shuffles;  ///< [block][part][byte]: a place in the part, or 0x80 for none
};

/// Pixels of `pixel` bytes at columns[i] in a row of `row` bytes; none where rows are shorter than
/// what a block reads or blocks lie too far apart in the row.
std::optional<BytePicks> plan_byte_picks(const std::vector<int64_t>& columns, int64_t pixel,
                                         int64_t row);
/// y[r * picks.bytes ...] of the row at x + rows[r], for r in [0, n).
void pick_bytes(const BytePicks& picks, const std::byte* x, const int64_t* rows, int64_t n,
                std::byte* y);

}  // namespace tombolo
