#pragma once

// A bounds-checked cursor over little-endian bytes. A read past the end gives zero and sets a
// sticky failure, so that a parser checks once per structure instead of once per field.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tombolo {

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return !failed_; }
  size_t position() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  void fail() { failed_ = true; }

  /// An unsigned integer of 0 to 8 bytes.
  uint64_t uint(size_t width) {
    uint64_t value = 0;
    if (width > 8) failed_ = true;
    const std::span<const std::byte> data = take(width);
    for (size_t i = 0; i < data.size() && i < 8; ++i) {
      value |= static_cast<uint64_t>(data[i]) << (8 * i);
    }
    return value;
  }
  uint8_t u8() { return static_cast<uint8_t>(uint(1)); }
  uint16_t u16() { return static_cast<uint16_t>(uint(2)); }
  uint32_t u32() { return static_cast<uint32_t>(uint(4)); }
  uint64_t u64() { return uint(8); }

  void skip(size_t count) { take(count); }
  /// The next `count` bytes; empty (and failed) when there are fewer.
  std::span<const std::byte> take(size_t count) {
    if (failed_ || count > left()) {
      failed_ = true;
      at_ = bytes_.size();  // so that a loop over what is left ends
      return {};
    }
    const auto result = bytes_.subspan(at_, count);
    at_ += count;
    return result;
  }
  std::string_view text(size_t count) {
    const auto data = take(count);
    return {reinterpret_cast<const char*>(data.data()), data.size()};
  }
  /// Consumes `signature` if it is next; fails otherwise.
  bool expect(std::string_view signature) {
    if (text(signature.size()) != signature) failed_ = true;
    return !failed_;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace tombolo
