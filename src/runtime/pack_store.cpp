#include "runtime/pack_store.h"

#include <algorithm>

#include "base/block_cache.h"

namespace tombolo {

/// Memory for a pack, 64-byte aligned, with a cache line behind it that may be read.
Result<std::byte*> SessionPacks::room(size_t bytes) {
  constexpr size_t kShared = size_t{2} << 20, kLarge = size_t{32} << 20;
  const size_t size = (bytes + 127) / 64 * 64;
  std::lock_guard lock(mutex_);
  if (size <= left_) {
    std::byte* data = shared_;
    shared_ += size;
    left_ -= size;
    return data;
  }
  const bool alone = size > kShared / 2;
  // Blocks that earlier nodes of a first run left behind would stand beside a large pack, which is
  // when a session takes the most memory.
  if (bytes >= kLarge) drop_kept_blocks();
  const size_t block = alone ? bytes : std::max(next_, size);
  const int64_t dims[] = {static_cast<int64_t>(block)};
  TRY(Tensor tensor, Tensor::allocate(DType::kUInt8, dims));
  std::byte* data = tensor.mutable_bytes().data();
  blocks_.push_back(std::move(tensor));
  if (alone) return data;
  shared_ = data + size;
  left_ = block - size;
  next_ = std::min(kShared, next_ * 2);
  return data;
}

Result<const std::byte*> SessionPacks::get(const Tensor& source, std::string_view key, size_t bytes,
                                           void (*fill)(void*, std::byte*), void* argument) {
  Entry* entry = nullptr;
  {
    std::lock_guard lock(mutex_);
    entry = &entries_[{source.bytes().data(), std::string(key)}];
  }
  std::lock_guard lock(entry->mutex);
  if (!entry->filled) {
    if (entry->data == nullptr) {
      TRY(entry->data, room(bytes));
    }
    fill(argument, entry->data);
    entry->filled = true;
    bytes_ += bytes;
    // What was packed is not read again, as a rule: its pages come back when it is.
    release(source.bytes());
  }
  return static_cast<const std::byte*>(entry->data);
}

}  // namespace tombolo
