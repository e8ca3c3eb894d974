#pragma once

// Floating-point numbers as text: the shortest decimal that reads back the same bits; `inf`,
// `-inf`, `nan`, `-nan`, and `nan(0x7f800001)` for every other NaN (the bits in hex).

#include <cstdint>
#include <string_view>

namespace tombolo::text {

inline constexpr size_t kMaxNumberText = 40;

/// Writes at most kMaxNumberText characters and returns the end.
char* write_number(char* at, float value);
char* write_number(char* at, double value);
char* write_number(char* at, int64_t value);
char* write_number(char* at, uint64_t value);

enum class NumberStatus { kOk, kMalformed, kOverflow };
/// The whole of `text` must be one number. Too small a number becomes zero.
NumberStatus read_number(std::string_view text, float& value);
NumberStatus read_number(std::string_view text, double& value);
NumberStatus read_number(std::string_view text, int64_t& value);
NumberStatus read_number(std::string_view text, uint64_t& value);

/// Appends the bytes that pairs of hex digits stand for; false when they are none.
bool read_hex(std::string_view text, char* out);

}  // namespace tombolo::text
