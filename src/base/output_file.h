#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/posix.h"
#include "base/result.h"

namespace tombolo {

/// A file being written. Bytes go to a temporary beside the target; commit() renames it over the
/// target, so that the target appears whole or not at all, and readers that have the old file
/// mapped keep it. Without commit() the temporary is removed. Nothing is synced to the disk: an
/// output can be made again.
///
/// An existing target keeps its permissions; a symbolic link is followed and stays. `-` (standard
/// output) and existing targets that are no regular file (a device, a pipe) are written directly.
///
/// Errors: parse (no such folder, no permission, a directory), resource (disk full, quota, file
/// size limit), runtime (other I/O errors).
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  /// Writes zeros up to the next multiple of `alignment` (not 0).
  Status pad_to(uint64_t alignment);
  /// Bytes written so far, buffered ones included.
  uint64_t position() const { return position_; }
  /// As given to create().
  const std::string& name() const { return name_; }

  /// Flushes, closes and publishes. Call once.
  Status commit();

 private:
  friend class OutputSet;
  enum class State : uint8_t { kWriting, kFinished, kPublished, kExchanged, kDone };

  OutputFile(std::string name, std::string target, std::string temporary, UniqueFd fd);
  Status write_through(const std::byte* data, size_t size);
  Status flush();
  /// Flushes and closes: what can fail for lack of space has failed after it.
  Status finish();
  /// Renames over the target; `undoable` keeps the old version until conclude() or revert().
  Status publish(bool undoable);
  void revert();
  void conclude();

  std::string name_;
  std::string target_;
  std::string temporary_;  // empty: written directly
  UniqueFd fd_;
  std::vector<std::byte> buffer_;
  uint64_t position_ = 0;
  State state_ = State::kWriting;
};

/// Removes the temporaries of every OutputFile of this process that is not published yet, for a
/// program that is about to die. Safe in a signal handler.
void remove_temporaries() noexcept;

/// Several files that belong together (a model and its external data). commit() publishes all or,
/// as far as the file system allows, none: every file is complete before the first rename, and a
/// failing rename undoes the earlier ones. Files are published in the order in which they were
/// added: add the data first and the model last, then nobody sees a model without its data.
class OutputSet {
 public:
  /// The file stays owned by the set; the pointer is valid until the set goes.
  Result<OutputFile*> create(const std::string& path);
  Status commit();

 private:
  std::vector<std::unique_ptr<OutputFile>> files_;
};

}  // namespace tombolo
