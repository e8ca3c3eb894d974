#pragma once

// The two sinks that make wire bytes. Protobuf puts a message's length before its content, so the
// sizes are counted first, message by message in writing order, and then used in that order: two
// passes whatever the nesting, and no buffer for any message.

#include <bit>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "onnx/wire.h"

namespace tombolo::onnx {

class WireSizer {
 public:
  uint64_t total = 0;
  std::vector<uint64_t> sizes;  ///< content bytes of each message, in order of their starts

  void number(uint32_t field, uint64_t value) { total += tag(field) + varint_size(value); }
  void fixed32(uint32_t field, float) { total += tag(field) + 4; }
  void floats(uint32_t field, std::span<const float> values) {
    total += (tag(field) + 4) * values.size();
  }
  void bytes(uint32_t field, std::string_view bytes) {
    total += tag(field) + varint_size(bytes.size()) + bytes.size();
  }
  void raw(std::string_view fields) { total += fields.size(); }
  template <typename Content>
  void message(uint32_t field, Content&& content) {
    const size_t at = sizes.size();
    const uint64_t before = total;
    sizes.push_back(0);
    content();
    sizes[at] = total - before;
    total += tag(field) + varint_size(sizes[at]);
  }

 private:
  static size_t tag(uint32_t field) { return field < 16 ? 1 : 2; }  // ONNX has none above 2047
};

/// Writes to anything with `Status write(std::string_view)`.
template <typename Output>
class WireWriter {
 public:
  WireWriter(Output& output, const std::vector<uint64_t>& sizes)
      : output_(output), next_size_(sizes.data()) {}

  void number(uint32_t field, uint64_t value) {
    char* at = room(20);
    used_ = put_varint(put_varint(at, tag_of(field, WireType::kVarint)), value);
  }
  void fixed32(uint32_t field, float value) {
    char* at = put_varint(room(20), tag_of(field, WireType::kFixed32));
    std::memcpy(at, &value, 4);
    used_ = at + 4;
  }
  void floats(uint32_t field, std::span<const float> values) {
    for (float value : values) fixed32(field, value);
  }
  void bytes(uint32_t field, std::string_view bytes) {
    used_ = put_varint(put_varint(room(20), tag_of(field, WireType::kBytes)), bytes.size());
    raw(bytes);
  }
  void raw(std::string_view bytes) {
    if (bytes.empty()) return;
    if (bytes.size() >= sizeof buffer_ / 2) {  // straight from where it is
      flush();
      if (status.ok()) status = output_.write(bytes);
      return;
    }
    char* at = room(bytes.size());
    std::memcpy(at, bytes.data(), bytes.size());
    used_ = at + bytes.size();
  }
  template <typename Content>
  void message(uint32_t field, Content&& content) {
    used_ = put_varint(put_varint(room(20), tag_of(field, WireType::kBytes)), *next_size_++);
    content();
  }
  /// Call at the end; then `status` tells.
  void flush() {
    if (status.ok() && used_ != buffer_)
      status = output_.write(std::string_view(buffer_, static_cast<size_t>(used_ - buffer_)));
    used_ = buffer_;
  }

  Status status = ok();

 private:
  char* room(size_t bytes) {
    if (static_cast<size_t>(buffer_ + sizeof buffer_ - used_) < bytes) flush();
    return used_;
  }

  Output& output_;
  const uint64_t* next_size_;
  char* used_ = buffer_;
  char buffer_[1 << 14];
};

/// Output into a string.
struct StringOutput {
  std::string& text;
  Status write(std::string_view bytes) {
    text.append(bytes);
    return ok();
  }
};

}  // namespace tombolo::onnx
