#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/posix.h"
#include "base/result.h"

namespace tombolo {

/// The bytes of a file, read-only. A regular file is mapped: opening costs no reading and no
/// memory, pages come when touched. Anything else (pipe, device, `-` for standard input) is read
/// into memory. Copies share the bytes; they live until the last copy, or the last owner(), goes.
///
/// A mapped file that another process truncates raises SIGBUS where the lost pages are read; one
/// that is overwritten in place changes under the reader. Neither can be prevented without
/// copying the file. Files that tombolo itself writes are replaced by renaming, which is safe.
class MappedFile {
 public:
  /// How much is read from what cannot be mapped, unless the caller says otherwise.
  static constexpr size_t kStreamLimit = size_t{256} << 20;

  /// No file: empty bytes, empty name.
  MappedFile() = default;

  /// Opens `path`; `-` is standard input. Errors: parse (missing, no permission, a directory),
  /// resource (a stream beyond `stream_limit` bytes).
  static Result<MappedFile> open(const std::string& path, size_t stream_limit = kStreamLimit);

  /// The same for an open descriptor; `name` is for messages.
  static Result<MappedFile> from_descriptor(UniqueFd fd, std::string name,
                                            size_t stream_limit = kStreamLimit);

  /// Bytes that are already in memory (tests, archives unpacked).
  static MappedFile from_memory(std::string bytes, std::string name);

  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(data_), size_};
  }
  std::string_view text() const { return {data_, size_}; }
  size_t size() const { return size_; }
  /// As given to open(); "standard input" for `-`.
  const std::string& name() const { return name_; }

  /// Keeps the bytes alive without keeping a MappedFile, for tensors that view them.
  const std::shared_ptr<const void>& owner() const { return owner_; }

  /// Tells the system that the whole pages inside `part` of bytes() are not needed soon, so that a
  /// pass over a large file does not count as resident memory. They come back when touched.
  void release_pages(std::span<const std::byte> part) const;

 private:
  std::shared_ptr<const void> owner_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  std::string name_;
};

}  // namespace tombolo
