#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/storage.h"
#include "runtime/kernels/kernel.h"
#include "runtime/pack_cache.h"

namespace tombolo {

/// The packed weights of one session.
class SessionPacks final : public PackStore {
 public:
  explicit SessionPacks(StoragePtr storage) : storage_(std::move(storage)) {}
  Result<const std::byte*> get(const PackRequest& request) override;
  void release(std::span<const std::byte> part) override {
    storage_->release({reinterpret_cast<const char*>(part.data()), part.size()});
  }
  uint64_t bytes() const { return bytes_; }  ///< of all packs
  /// Before the first get(): packs are looked for and kept there, too.
  void set_cache(std::unique_ptr<PackCache> cache) { cache_ = std::move(cache); }

 private:
  struct Entry {
    std::mutex mutex;  ///< held while it is being filled
    const std::byte* data = nullptr;
    bool filled = false;
  };
  Status fill(Entry& entry, const PackRequest& request);
  Result<std::byte*> room(size_t bytes);

  StoragePtr storage_;
  std::unique_ptr<PackCache> cache_;  ///< null: none
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  ///< by key and where the sources lie
  std::atomic<uint64_t> bytes_{0};
  // Packs that are not large share blocks that grow to some huge pages: what is streamed through in
  // every run misses the TLB less often, and the processor fetches ahead across packs.
  std::vector<Tensor> blocks_;
  std::byte* shared_ = nullptr;  ///< what is left of the last shared block
  size_t left_ = 0, next_ = size_t{128} << 10;
};

}  // namespace tombolo
