#pragma once

#include <cstddef>
#include <vector>

namespace tombolo {

/// A piece of memory that is needed from node `first` to node `last`, both included.
struct ArenaBlock {
  size_t bytes = 0;
  int first = 0, last = 0;
  size_t offset = 0;  ///< the result
};

/// Gives every block an offset, a multiple of 64, so that no two blocks that are needed at one time
/// overlap: largest first, each into the smallest gap that takes it. Returns the size of the arena.
size_t place_blocks(std::vector<ArenaBlock>& blocks);

}  // namespace tombolo
