#pragma once

// Reading JSON that others wrote: a parsed document and views of its values. Every access is
// checked: a missing member, or a value of another kind, gives the fallback (or an absent view),
// never undefined behaviour. Nesting is capped before the text is parsed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tombolo {

class Json {
 public:
  Json() = default;  ///< absent

  bool exists() const { return value_ != nullptr; }
  bool is_null() const;  ///< absent, or null
  bool is_bool() const;
  bool is_number() const;
  bool is_int() const;  ///< a number without a fraction that fits int64
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  size_t size() const;                          ///< of an array or object, else 0
  Json operator[](std::string_view key) const;  ///< absent when not an object or not there
  Json at(size_t index) const;                  ///< element of an array, absent beyond its end
  std::string_view key(size_t index) const;     ///< name of an object's member, in file order
  Json member(size_t index) const;              ///< value of an object's member

  std::optional<int64_t> as_int() const;  ///< also true/false and 3.0, as Python does
  std::optional<double> as_double() const;
  std::optional<std::string_view> as_string() const;
  int64_t int_or(int64_t fallback) const { return as_int().value_or(fallback); }
  double double_or(double fallback) const { return as_double().value_or(fallback); }
  std::string_view string_or(std::string_view fallback) const {
    return as_string().value_or(fallback);
  }
  bool bool_or(bool fallback) const;  ///< numbers count as in Python
  /// An array of integers; nullopt when it is not one.
  std::optional<std::vector<int64_t>> as_ints() const;

  /// For messages: the value as JSON text, cut after `limit` characters.
  std::string to_string(size_t limit = 80) const;

 private:
  friend class JsonDocument;
  explicit Json(const void* value) : value_(value) {}
  const void* value_ = nullptr;  // a rapidjson::Value
};

/// The same text, in `room` where it had to be changed, with the exponents of zeros blanked:
/// RapidJSON 1.1 normalises a significand of 0 by counting its leading zeros, which is undefined,
/// and reads 0e44 as infinity.
std::string_view without_powers_of_zero(std::string_view text, std::string& room);

class JsonDocument {
 public:
  /// Parses UTF-8 text; NaN and Infinity are accepted, as Python writes them. Errors name line
  /// and column.
  static Result<JsonDocument> parse(std::string_view text, size_t max_depth = 256);
  Json root() const;

 private:
  std::shared_ptr<const void> document_;
};

}  // namespace tombolo
