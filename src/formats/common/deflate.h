#pragma once

// zlib's compression: members of zip archives, and whole files.

#include "formats/common/zip.h"

namespace tombolo {

/// What stands around the compressed data.
enum class Deflate : uint8_t {
  kRaw,       ///< nothing: members of zip archives
  kZlibGzip,  ///< zlib's or gzip's header and checksum
};

/// The bytes that `stored` stands for. Error where it is damaged, or where they are more than
/// `most`; memory grows with what comes out, whatever a header claims.
Result<Blob> inflated(std::span<const std::byte> stored, Deflate form, uint64_t most);
/// The first bytes, at most `count`; empty where it is not of that form.
std::string inflated_head(std::span<const std::byte> stored, size_t count);
/// Whether the bytes begin as a compressed file does.
bool is_deflated(std::span<const std::byte> bytes);

}  // namespace tombolo
