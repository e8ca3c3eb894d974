#pragma once

// Packed weights on disk, for sessions to come: files of one folder, named by a hash of the weights
// themselves, the layout, the processor and this library. What is found is mapped, so that
// processes share it and none of it counts as memory of its own. A file that is damaged, or belongs
// to another version, counts as absent; files may be deleted at any time.

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "ir/tensor.h"

namespace tombolo {

class PackCache {
 public:
  /// Makes the last part of `folder` if it is not there. Errors: usage (no such place, or it cannot
  /// be written).
  static Result<std::unique_ptr<PackCache>> open(std::string folder);

  /// The file of what `key`, a layout and all that it depends on, makes of `sources`. Reads all of
  /// them.
  std::string name_of(std::span<const Tensor* const> sources, std::string_view key,
                      size_t bytes) const;
  /// The pack, 64-byte aligned, with a cache line behind it that may be read; it lives as long as
  /// the cache. Null when it is not there, whole and undamaged.
  const std::byte* find(const std::string& name, size_t bytes);
  /// Writes a pack. What cannot be written (a full disk) is made again next time.
  void keep(const std::string& name, std::span<const std::byte> pack) const;

 private:
  explicit PackCache(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::mutex mutex_;
  std::vector<MappedFile> files_;
};

}  // namespace tombolo
