#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tombolo {

/// Memory for tensors, 64-byte aligned. Large blocks that are given back are kept for a while: the
/// system's allocator would return them, and every run would then pay for their pages again.
/// Null when memory is refused.
void* take_block(size_t bytes);
/// `count` empty texts, in memory that texts were in before, where there is some: pages that are
/// new to the process cost more than what is written there.
std::shared_ptr<std::vector<std::string>> take_texts(size_t count);
/// `bytes` as given to take_block.
void give_block(void* block, size_t bytes);
/// Returns the kept blocks to the system.
void drop_kept_blocks();
size_t kept_block_bytes();

}  // namespace tombolo
