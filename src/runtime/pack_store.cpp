#include "runtime/pack_store.h"

#include <algorithm>

#include "base/block_cache.h"

namespace tombolo {

/// Memory for a pack, 64-byte aligned, with a cache line behind it that may be read.
Result<std::byte*> SessionPacks::room(size_t bytes) {
  constexpr size_t kShared = size_t{32} << 20, kAlone = kShared / 4, kLarge = size_t{32} << 20;
  const size_t size = (bytes + 127) / 64 * 64;
  std::lock_guard lock(mutex_);
  if (size <= left_) {
    std::byte* data = shared_;
    shared_ += size;
    left_ -= size;
    return data;
  }
  const bool alone = size > kAlone;
  // Blocks that earlier nodes of a first run left behind would stand beside a large pack, which is
  // when a session takes the most memory.
  if (bytes >= kLarge) drop_kept_blocks();
  const size_t block = alone ? bytes : std::max(next_, size);
  const int64_t dims[] = {static_cast<int64_t>(block)};
  TRY(Tensor tensor, Tensor::allocate(DType::kUInt8, dims, true));
  std::byte* data = tensor.mutable_bytes().data();
  blocks_.push_back(std::move(tensor));
  if (alone) return data;
  shared_ = data + size;
  left_ = block - size;
  next_ = std::min(kShared, next_ * 2);
  return data;
}

Status SessionPacks::fill(Entry& entry, const PackRequest& request) {
  constexpr size_t kWorthAFile = size_t{64} << 10;
  std::string name;
  if (cache_ != nullptr && request.worth_keeping && request.bytes >= kWorthAFile) {
    name = cache_->name_of(request.sources, request.key, request.bytes);
    entry.data = cache_->find(name, request.bytes);
    if (entry.data != nullptr) return ok();
  }
  TRY(std::byte* const target, room(request.bytes));
  request.fill(request.argument, target);
  entry.data = target;
  if (!name.empty()) cache_->keep(name, {target, request.bytes});
  return ok();
}

Result<const std::byte*> SessionPacks::get(const PackRequest& request) {
  Entry* entry = nullptr;
  {
    std::string key(request.key);
    key += '\0';
    for (const Tensor* source : request.sources) {
      const void* const identity = source->identity();
      key.append(reinterpret_cast<const char*>(&identity), sizeof identity);
    }
    std::lock_guard lock(mutex_);
    entry = &entries_[std::move(key)];
  }
  std::lock_guard lock(entry->mutex);
  if (!entry->filled) {
    CHECK_OK(fill(*entry, request));
    entry->filled = true;
    bytes_ += request.bytes;
    // What was packed is not read again, as a rule: its pages come back when it is.
    for (const Tensor* source : request.sources) release(source->source());
  }
  return entry->data;
}

}  // namespace tombolo
