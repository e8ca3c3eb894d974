#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tombolo {

/// SHA-1 (FIPS 180-4), for the `checksum` key of ONNX external data: a guard against mistakes, not
/// against attackers. Written here because the libraries that have it (libcrypto, Nettle) are
/// megabytes of static code for these sixty lines.
class Sha1 {
 public:
  void update(std::span<const std::byte> bytes);
  /// The digest of all bytes so far, as 40 lower-case hexadecimal digits. Call once, at the end.
  std::string finish();

  static std::string of(std::span<const std::byte> bytes) {
    Sha1 sha1;
    sha1.update(bytes);
    return sha1.finish();
  }

 private:
  void process(const std::byte* block);

  std::array<uint32_t, 5> state_ = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  std::array<std::byte, 64> pending_{};
  uint64_t length_ = 0;
};

}  // namespace tombolo
