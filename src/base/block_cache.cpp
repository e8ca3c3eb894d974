#include "base/block_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "base/sanitizer.h"

namespace tombolo {

namespace {

constexpr bool kKeep = !kAddressSanitizer;      // a use after free must stay visible
constexpr size_t kSmallest = size_t{64} << 10;  ///< smaller blocks are the system's business
constexpr size_t kLeastKept = size_t{128} << 20, kMostKept = size_t{256} << 20;
constexpr size_t kHuge = size_t{2} << 20;

/// Rounded up so that blocks of nearly equal size stand in for each other: at most 1/8 too large.
size_t block_size(size_t bytes) {
  if (bytes < kSmallest) return (bytes + 63) / 64 * 64;
  size_t step = kSmallest / 8;
  while (step * 16 < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

class Cache {
 public:
  /// The smallest that is large enough, if it has no more than `most`.
  Block take(size_t size, size_t most) {
    std::lock_guard lock(mutex_);
    const auto found = blocks_.lower_bound(size);
    if (found == blocks_.end() || found->first > most) return {};
    const Block block{found->second, found->first};
    blocks_.erase(found);
    bytes_ -= block.size;
    return block;
  }
  bool give(const Block& block) {
    std::lock_guard lock(mutex_);
    if (!fits(block.size)) return false;
    blocks_.emplace(block.size, block.data);
    bytes_ += block.size;
    return true;
  }
  using Texts = std::vector<std::string>;
  Texts take_texts(size_t count) {
    std::lock_guard lock(mutex_);
    const auto found = texts_.lower_bound(count);
    if (found == texts_.end() || found->first > 2 * count) return {};
    Texts texts = std::move(found->second);
    texts_.erase(found);
    bytes_ -= texts.capacity() * sizeof(std::string);
    return texts;
  }
  void give_texts(Texts texts) {
    texts.clear();
    const size_t size = texts.capacity() * sizeof(std::string);
    std::lock_guard lock(mutex_);
    if (!fits(size)) return;
    const size_t capacity = texts.capacity();
    texts_.emplace(capacity, std::move(texts));
    bytes_ += size;
  }
  void drop() {
    std::multimap<size_t, void*> dropped;
    std::multimap<size_t, Texts> dropped_texts;
    {
      std::lock_guard lock(mutex_);
      dropped.swap(blocks_);
      dropped_texts.swap(texts_);
      bytes_ = 0;
    }
    for (const auto& [size, block] : dropped) {
      // Blocks as large as these come from the heap after all, once some were freed, and a heap
      // keeps its pages.
      if (size >= kHuge) madvise(block, size / 4096 * 4096, MADV_DONTNEED);
      std::free(block);
    }
  }
  size_t bytes() {
    std::lock_guard lock(mutex_);
    return bytes_;
  }
  void keep(size_t most) {
    std::lock_guard lock(mutex_);
    most_ = most;
  }

 private:
  bool fits(size_t size) const { return size <= most_ / 2 && bytes_ + size <= most_; }

  std::mutex mutex_;
  std::multimap<size_t, void*> blocks_;
  std::multimap<size_t, Texts> texts_;  ///< empty, by what they hold
  size_t bytes_ = 0, most_ = kLeastKept;
};

/// Never destroyed: tensors may outlive every static object.
Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

}  // namespace

Block take_block(size_t bytes, bool lasting) {
  const size_t size = block_size(bytes);
  if (kKeep && size >= kSmallest)
    if (const Block block = cache().take(size, lasting ? size : 2 * size); block.data != nullptr)
      return block;
  if (size < kHuge) return {std::aligned_alloc(64, size), size};
  // Large blocks on huge pages where the system has them: fewer faults, fewer misses of the TLB.
  void* data = std::aligned_alloc(kHuge, (size + kHuge - 1) / kHuge * kHuge);
  if (data != nullptr) madvise(data, size / 4096 * 4096, MADV_HUGEPAGE);
  return {data, size};
}

void give_block(const Block& block) {
  if (kKeep && block.size >= kSmallest && cache().give(block)) return;
  std::free(block.data);
}

std::shared_ptr<std::vector<std::string>> take_texts(size_t count) {
  if (!kKeep || count * sizeof(std::string) < kSmallest)
    return std::make_shared<std::vector<std::string>>(count);
  auto texts = std::make_unique<std::vector<std::string>>(cache().take_texts(count));
  texts->resize(count);
  return {texts.release(), [](std::vector<std::string>* made) {
            cache().give_texts(std::move(*made));
            delete made;
          }};
}

void size_block_cache(uint64_t memory) {
  constexpr uint64_t kPart = 32;
  cache().keep(std::clamp<uint64_t>(memory / kPart, kLeastKept, kMostKept));
}
void drop_kept_blocks() { cache().drop(); }
size_t kept_block_bytes() { return cache().bytes(); }

}  // namespace tombolo
