#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tombolo {

/// Memory for tensors, 64-byte aligned. Large blocks that are given back are kept for a while: the
/// system's allocator would return them, and every run would then pay for their pages again.
/// No data when memory is refused.
struct Block {
  void* data = nullptr;
  size_t size = 0;  ///< what it holds: up to twice what was asked for
};
/// What lasts gets no more than an eighth too much.
Block take_block(size_t bytes, bool lasting = false);
/// `count` empty texts, in memory that texts were in before, where there is some: pages that are
/// new to the process cost more than what is written there.
std::shared_ptr<std::vector<std::string>> take_texts(size_t count);
/// As take_block gave it.
void give_block(const Block& block);
/// How much is kept, by what memory there is: a part of it, 128 to 256 MiB, and no block of more
/// than half of that.
void size_block_cache(uint64_t memory);
/// Returns the kept blocks to the system.
void drop_kept_blocks();
size_t kept_block_bytes();

}  // namespace tombolo
