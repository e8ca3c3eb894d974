#include "ir/text/number.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace tombolo::text {

namespace {

template <typename Float, typename Bits>
char* write_float(char* at, Float value, Bits quiet) {
  if (std::isnan(value)) {
    constexpr Bits kSign = Bits(1) << (sizeof(Bits) * 8 - 1);
    const Bits bits = std::bit_cast<Bits>(value);
    const bool plain = (bits & ~kSign) == quiet;
    if (plain && (bits & kSign) != 0) *at++ = '-';
    std::memcpy(at, "nan", 3);
    at += 3;
    if (plain) return at;
    std::memcpy(at, "(0x", 3);
    at = std::to_chars(at + 3, at + 3 + 16, bits, 16).ptr;
    *at++ = ')';
    return at;
  }
  return std::to_chars(at, at + kMaxNumberText, value).ptr;
}

/// from_chars says "out of range" for both ends. The number is at the small end when its first
/// significant digit stands behind the decimal point.
bool is_tiny(std::string_view text) {
  int64_t magnitude = 0;
  bool point = false, significant = false;
  size_t i = !text.empty() && text[0] == '-' ? 1 : 0;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    significant = significant || text[i] != '0';
    if (!point && significant) ++magnitude;
    if (point && !significant) --magnitude;
  }
  if (i < text.size()) {
    std::string_view exponent = text.substr(i + 1);
    const bool negative = !exponent.empty() && exponent[0] == '-';
    if (!exponent.empty() && (exponent[0] == '-' || exponent[0] == '+')) exponent.remove_prefix(1);
    int64_t value = 0;
    for (char c : exponent)
      if (value < (int64_t(1) << 40)) value = value * 10 + (c - '0');
    magnitude += negative ? -value : value;
  }
  return magnitude <= 0;
}

template <typename Bits, typename Float>
NumberStatus read_float(std::string_view text, Float& value) {
  const char* const end = text.data() + text.size();
  if (text.size() > 6 && text.substr(0, 6) == "nan(0x" && text.back() == ')') {
    Bits bits = 0;
    auto [stop, code] = std::from_chars(text.data() + 6, end - 1, bits, 16);
    value = std::bit_cast<Float>(bits);
    return code == std::errc() && stop == end - 1 && std::isnan(value) ? NumberStatus::kOk
                                                                       : NumberStatus::kMalformed;
  }
  if (text.find('(') != text.npos) return NumberStatus::kMalformed;
  auto [stop, code] = std::from_chars(text.data(), end, value);
  if (stop != end || code == std::errc::invalid_argument) return NumberStatus::kMalformed;
  if (code == std::errc()) return NumberStatus::kOk;
  if (!is_tiny(text)) return NumberStatus::kOverflow;
  value = text[0] == '-' ? -Float(0) : Float(0);
  return NumberStatus::kOk;
}

template <typename Int>
NumberStatus read_int(std::string_view text, Int& value) {
  const char* const end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc::result_out_of_range) return NumberStatus::kOverflow;
  return code == std::errc() && stop == end ? NumberStatus::kOk : NumberStatus::kMalformed;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

char* write_number(char* at, float value) {
  return write_float<float, uint32_t>(at, value, 0x7FC00000u);
}
char* write_number(char* at, double value) {
  return write_float<double, uint64_t>(at, value, 0x7FF8000000000000ull);
}
char* write_number(char* at, int64_t value) {
  return std::to_chars(at, at + kMaxNumberText, value).ptr;
}
char* write_number(char* at, uint64_t value) {
  return std::to_chars(at, at + kMaxNumberText, value).ptr;
}

NumberStatus read_number(std::string_view text, float& value) {
  return read_float<uint32_t>(text, value);
}
NumberStatus read_number(std::string_view text, double& value) {
  return read_float<uint64_t>(text, value);
}
NumberStatus read_number(std::string_view text, int64_t& value) { return read_int(text, value); }
NumberStatus read_number(std::string_view text, uint64_t& value) { return read_int(text, value); }

bool read_hex(std::string_view text, char* out) {
  if (text.size() % 2 != 0) return false;
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    *out++ = static_cast<char>(high * 16 + low);
  }
  return true;
}

}  // namespace tombolo::text
