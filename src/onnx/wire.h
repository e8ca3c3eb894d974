#pragma once

// Protobuf's wire format, read in place. Hand-written rather than protozero because fields that
// are not understood must come back byte for byte (protozero throws on groups and hides where a
// field starts), because an error must name a byte offset, and because nothing may throw here.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "ir/storage.h"

namespace tombolo::onnx {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

/// Groups (obsolete, never used by ONNX) are skipped as unknown fields up to this depth.
inline constexpr int kMaxGroupDepth = 100;

/// Walks the fields of one message. After next() the public members describe the field. On
/// malformed bytes next() returns false and `fault` says what is wrong at byte `fault_at`.
class WireReader {
 public:
  WireReader() = default;
  explicit WireReader(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()), start_(at_), payload_(at_) {}

  uint32_t field = 0;
  WireType type = WireType::kVarint;
  uint64_t number = 0;     ///< varint, fixed32 or fixed64
  std::string_view bytes;  ///< length-delimited content; never null
  const char* fault = nullptr;
  const char* fault_at = nullptr;

  bool next() {
    start_ = at_;
    if (at_ == end_) return false;
    uint64_t tag;
    if (!varint(tag)) return fail("has a malformed tag");
    field = static_cast<uint32_t>(tag >> 3);
    type = static_cast<WireType>(tag & 7);
    if (field == 0 || tag > UINT32_MAX) return fail("has an impossible field number");
    payload_ = at_;
    return value(0);
  }
  /// The whole field, tag included, as it stands in the file.
  std::string_view slice() const { return {start_, static_cast<size_t>(at_ - start_)}; }
  /// The field without its tag: of a number, just its bytes.
  std::string_view payload() const { return {payload_, static_cast<size_t>(at_ - payload_)}; }
  bool is(uint32_t number_of_field, WireType wire) const {
    return field == number_of_field && type == wire;
  }

 private:
  bool fail(const char* what) {
    fault = what;
    fault_at = start_;
    return false;
  }
  bool varint(uint64_t& out) {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) {
      out = static_cast<uint8_t>(*at_++);
      return true;
    }
    out = 0;
    for (unsigned shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      out |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool value(int depth) {
    const auto left = [&] { return static_cast<uint64_t>(end_ - at_); };
    switch (type) {
      case WireType::kVarint:
        return varint(number) || fail("has a malformed number");
      case WireType::kBytes: {
        uint64_t length;
        if (!varint(length)) return fail("has a malformed length");
        if (length > left()) return fail("runs past the end");
        bytes = {at_, static_cast<size_t>(length)};
        at_ += length;
        return true;
      }
      case WireType::kFixed32:
      case WireType::kFixed64: {
        const size_t width = type == WireType::kFixed32 ? 4 : 8;
        if (left() < width) return fail("runs past the end");
        number = 0;
        std::memcpy(&number, at_, width);
        at_ += width;
        return true;
      }
      case WireType::kGroup:
        return group(depth);
      default:
        return fail("has an impossible wire type");
    }
  }
  bool group(int depth) {
    if (depth >= kMaxGroupDepth) return fail("nests groups too deeply");
    const uint32_t outer = field;
    for (;;) {
      uint64_t tag;
      if (at_ == end_ || !varint(tag) || tag > UINT32_MAX || tag < 8)
        return fail("is a group without an end");
      field = static_cast<uint32_t>(tag >> 3);
      type = static_cast<WireType>(tag & 7);
      if (type == WireType::kEndGroup) {
        type = WireType::kGroup;
        return field == outer || fail("is a group with the wrong end");
      }
      if (!value(depth + 1)) return false;
    }
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  const char* start_ = nullptr;
  const char* payload_ = nullptr;
};

/// Collects pieces of the file into one Text: a view when there is one piece, or pieces that touch;
/// a copy in the storage otherwise. For unknown fields, split packed fields, merged messages.
class Pieces {
 public:
  void add(std::string_view piece) {
    if (joined_) {
      joined_->append(piece);
    } else if (view_.data() == nullptr) {
      view_ = piece;
    } else if (view_.data() + view_.size() == piece.data()) {
      view_ = {view_.data(), view_.size() + piece.size()};
    } else if (view_.empty()) {
      view_ = piece;
    } else if (!piece.empty()) {
      joined_ = std::make_unique<std::string>(view_);
      joined_->append(piece);
    }
  }
  bool any() const { return joined_ != nullptr || view_.data() != nullptr; }
  /// Null when nothing was added.
  Text text(Storage& storage) const { return joined_ ? storage.copy(*joined_) : view_; }

 private:
  std::string_view view_;
  std::unique_ptr<std::string> joined_;
};

inline size_t varint_size(uint64_t value) {
  return (static_cast<size_t>(63 - __builtin_clzll(value | 1)) * 9 + 73) / 64;
}
inline char* put_varint(char* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<char>(value);
  return out;
}
inline uint64_t tag_of(uint32_t field, WireType type) {
  return static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type);
}

}  // namespace tombolo::onnx
