#pragma once

#include <cstdint>

namespace tombolo {

/// Channels of a block of the operators Block... of ai.tombolo: a line of the cache, whatever the
/// instruction set.
inline constexpr int64_t kChannelBlock = 16;

/// Whether a block holds several whole groups of a convolution, of so many channels each
/// (depthwise: one).
inline bool shares_blocks(int64_t groups, int64_t inputs, int64_t outputs) {
  return groups > 1 && inputs == outputs && inputs < kChannelBlock && kChannelBlock % inputs == 0;
}
/// Whether a convolution of such groups goes over blocked channels: else groups are whole blocks.
inline bool takes_groups(int64_t groups, int64_t inputs, int64_t outputs) {
  return groups == 1 || shares_blocks(groups, inputs, outputs) ||
         (inputs % kChannelBlock == 0 && outputs % kChannelBlock == 0);
}
/// Whether groups of half blocks begin or end within a block, so that a block has parts of several.
inline bool bridges_blocks(int64_t groups, int64_t inputs, int64_t outputs) {
  constexpr int64_t kHalf = kChannelBlock / 2;
  return !takes_groups(groups, inputs, outputs) && inputs % kHalf == 0 && outputs % kHalf == 0;
}
/// Whether a convolution has so few outputs that its lanes had better be inputs. What adds them up
/// is a good part of the work where there is one position of the kernel.
inline bool is_narrow(int64_t groups, int64_t inputs, int64_t outputs, int64_t taps) {
  return groups == 1 && inputs >= kChannelBlock && outputs <= (taps == 1 ? 4 : 6);
}

}  // namespace tombolo
