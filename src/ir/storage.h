#pragma once

// What a model's names, bytes and types live in. Every string of the IR is a view: into the mapped
// file for a model that was read, into the arena here for what was created. One Storage is shared
// by a model's graphs, subgraphs and functions, and lives as long as any of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace tombolo {

struct Type;

/// A string of the model. A default-constructed Text (null data) means that the field is absent
/// from the file; an empty one that is not null means that it is there and empty. Both are
/// lossless.
using Text = std::string_view;
inline bool present(Text text) { return text.data() != nullptr; }

class Storage {
 public:
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

  /// Copies `text` into the arena. The result is never null.
  Text copy(Text text);
  /// An uninitialised block in the arena, aligned to 16 bytes.
  std::span<std::byte> allocate(size_t bytes);
  /// Keeps `owner` (a mapped file, a buffer) alive as long as this storage.
  void keep(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }
  /// The same for a file; release() knows its bytes then.
  void keep(MappedFile file) { files_.push_back(std::move(file)); }
  /// Lets go of the memory behind `bytes` where they are part of a kept file and not needed soon:
  /// a pass over a large model then stays small. They come back when touched.
  void release(std::string_view bytes) const;

  /// The one immutable instance of a type that equals `type`.
  const Type* intern(Type type);

  /// Folder against which external data locations are resolved; empty when the model has no file.
  const std::string& folder() const { return folder_; }
  void set_folder(std::string folder) { folder_ = std::move(folder); }
  /// The bytes of an external data file of this model, mapped on first use and kept. Errors when
  /// the location escapes the model's folder or cannot be opened.
  Result<std::string_view> external_file(Text location);

  uint32_t next_id() { return next_id_++; }
  uint32_t id_count() const { return next_id_; }  ///< ids given out so far, of nodes and values

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  size_t block_left_ = 0;
  std::byte* block_at_ = nullptr;
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<MappedFile> files_;
  std::unordered_multimap<size_t, std::unique_ptr<const Type>> types_;
  std::unordered_map<std::string, std::string_view> external_files_;
  std::string folder_;
  uint32_t next_id_ = 0;
};

using StoragePtr = std::shared_ptr<Storage>;

/// One StringStringEntryProto.
struct StringEntry {
  Text key, value;
  Text unknown{};  ///< unknown fields, as wire bytes
};

}  // namespace tombolo
