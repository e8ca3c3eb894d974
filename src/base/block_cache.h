#pragma once

#include <cstddef>

namespace tombolo {

/// Memory for tensors, 64-byte aligned. Large blocks that are given back are kept for a while: the
/// system's allocator would return them, and every run would then pay for their pages again.
/// Null when memory is refused.
void* take_block(size_t bytes);
/// `bytes` as given to take_block.
void give_block(void* block, size_t bytes);
/// Returns the kept blocks to the system.
void drop_kept_blocks();
size_t kept_block_bytes();

}  // namespace tombolo
