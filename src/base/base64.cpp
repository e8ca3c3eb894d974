#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tombolo {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kInvalid = 0xFF;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kInvalid);
  for (size_t i = 0; i < 64; ++i) {
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  values['-'] = 62;
  values['_'] = 63;
  return values;
}();

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() / 3 + 1) * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j) {
      word = word << 8 | (j < have ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= have ? kAlphabet[word >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 == 0 && text.ends_with('=')) {
    text.remove_suffix(text.ends_with("==") ? 2 : 1);
  }
  const size_t tail = text.size() % 4;
  if (tail == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t have = std::min<size_t>(4, text.size() - i);
    uint32_t word = 0;
    for (size_t j = 0; j < 4; ++j) {
      const uint8_t value = j < have ? kValues[static_cast<uint8_t>(text[i + j])] : uint8_t{0};
      if (value == kInvalid) return std::nullopt;
      word = word << 6 | value;
    }
    const size_t out = have - 1;
    for (size_t j = 0; j < out; ++j) bytes += static_cast<char>(word >> (16 - 8 * j) & 0xFF);
    if (have < 4 && (word & ((1u << (24 - 8 * out)) - 1)) != 0) return std::nullopt;
  }
  return bytes;
}

}  // namespace tombolo
