#pragma once

// A read-only view of a ZIP archive: stored and deflated members, zip64. Stored members are views
// of the archive's bytes. Refused: encryption, other methods, archives in several parts, duplicate
// names, members that overlap (the trick of decompression bombs), sizes that compression cannot
// explain, and members whose own header contradicts the directory. A name is what its writer
// called a value, "/Reshape_output_0" or "../a" too: no member is ever written to disk under it.
//
// Source: APPNOTE.TXT 6.3.10.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tombolo {

/// Bytes and what keeps them alive.
struct Blob {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

class ZipArchive {
 public:
  struct Member {
    std::string name;
    uint64_t offset = 0;  ///< of the data
    uint64_t stored = 0;  ///< bytes in the archive
    uint64_t size = 0;    ///< bytes when unpacked
    uint32_t crc = 0;
    bool deflated = false;
  };

  static bool probe(std::span<const std::byte> bytes);
  static Result<ZipArchive> open(std::span<const std::byte> bytes,
                                 std::shared_ptr<const void> owner);

  const std::vector<Member>& members() const { return members_; }
  const Member* find(std::string_view name) const;
  /// The content of a member. The checksum of a deflated one is verified; that of a stored one is
  /// not, so that a view costs no reading.
  Result<Blob> read(const Member& member) const;
  /// Compares a stored member with its checksum, where it has one: reads all of it.
  Status verify(const Member& member) const;
  /// As read, by name; a parse error when there is no such member.
  Result<Blob> read(std::string_view name) const;

 private:
  Status read_directory();
  Blob blob_;
  std::vector<Member> members_;
  std::vector<uint32_t> by_name_;  ///< places in members_, in the order of their names
};

}  // namespace tombolo
