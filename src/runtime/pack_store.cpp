#include "runtime/pack_store.h"

namespace tombolo {

Result<const std::byte*> SessionPacks::get(const Tensor& source, std::string_view key, size_t bytes,
                                           void (*fill)(void*, std::byte*), void* argument) {
  Entry* entry = nullptr;
  {
    std::lock_guard lock(mutex_);
    entry = &entries_[{source.bytes().data(), std::string(key)}];
  }
  std::lock_guard lock(entry->mutex);
  if (!entry->filled) {
    const int64_t dims[] = {static_cast<int64_t>(bytes)};
    TRY(entry->block, Tensor::allocate(DType::kUInt8, dims));
    fill(argument, entry->block.mutable_bytes().data());
    entry->filled = true;
    bytes_ += bytes;
    // What was packed is not read again, as a rule: its pages come back when it is.
    release(source.bytes());
  }
  return static_cast<const std::byte*>(entry->block.bytes().data());
}

}  // namespace tombolo
