#pragma once

// How threads share the transforms of Winograd's filtering over blocked channels.

#include <algorithm>
#include <cstdint>

#include "runtime/kernels/parallel.h"

namespace tombolo {

/// Some tiles of those at hand, of which `held` is the first.
struct TilesAtHand {
  int64_t held, begin, end;
};

/// fn(block, tiles) for each block of channels of some tiles. Threaded, unless `alone`: where
/// blocks are few each thread has some tiles of one.
template <typename Fn>
void share_transforms(int64_t blocks, int64_t begin, int64_t end, bool alone, Fn&& fn) {
  constexpr int64_t kLeast = 8;
  const int64_t threads = alone ? 1 : thread_count();
  const int64_t slices = threads == 1
                             ? 1
                             : std::clamp<int64_t>(4 * threads / blocks, 1,
                                                   std::max<int64_t>(1, (end - begin) / kLeast));
  const auto start = [&](int64_t slice) { return begin + (end - begin) * slice / slices; };
  parallel(blocks * slices, alone ? blocks : 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to;) {
      const int64_t block = i / slices, slice = i % slices;
      const int64_t count = std::min(slices - slice, to - i);
      fn(block, TilesAtHand{begin, start(slice), start(slice + count)});
      i += count;
    }
  });
}

}  // namespace tombolo
