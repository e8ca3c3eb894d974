#pragma once

// Blocks [length][inner] of so few columns that a vector would be mostly empty: some are turned at
// once, after which the lines along the axis of all of them lie side by side.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {

constexpr int64_t kTurnedBytes = 32768;  ///< of blocks together: they stay in the first cache
constexpr int64_t kMostTurnedLines = 512;

/// How many blocks of numbers of `size` bytes to turn at once; 0: lines are better off alone.
inline int64_t blocks_to_turn(int64_t outer, int64_t length, int64_t inner, int64_t size) {
  constexpr int64_t kFewColumns = 16, kMost = 64, kLeast = 8, kLeastLines = 16;
  if (inner >= kFewColumns) return 0;
  const int64_t most = std::min({outer, kMost, kMostTurnedLines / inner});
  const int64_t together = std::min(most, kTurnedBytes / (length * inner * size));
  return together >= kLeast && together * inner >= kLeastLines ? together : 0;
}

/// `count` blocks, which lie one behind the other: [length][inner][count].
inline void turn_blocks(const std::byte* x, int64_t count, int64_t block, int64_t size,
                        std::byte* turned) {
  transpose_tile(x, block, turned, count, count, block, size);
}
inline void turn_blocks_back(const std::byte* turned, int64_t count, int64_t block, int64_t size,
                             std::byte* y) {
  transpose_tile(turned, count, y, block, block, count, size);
}

/// y of x, `blocks` of which each has `block` numbers in lines of `inner` side by side, `together`
/// at a time: work(lines, width) changes what is turned, of which `width` lines lie side by side.
template <typename T, typename Work>
void work_on_turned(const T* x, T* y, int64_t blocks, int64_t block, int64_t inner,
                    int64_t together, Work&& work) {
  alignas(64) std::byte turned[kTurnedBytes];
  for (; blocks > 0; blocks -= together, x += block * together, y += block * together) {
    const int64_t count = std::min(blocks, together);
    turn_blocks(reinterpret_cast<const std::byte*>(x), count, block, sizeof(T), turned);
    work(reinterpret_cast<T*>(turned), count * inner);
    turn_blocks_back(turned, count, block, sizeof(T), reinterpret_cast<std::byte*>(y));
  }
}

}  // namespace tombolo
