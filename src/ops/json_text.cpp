#include "ops/json_text.h"

#include <charconv>

#include "base/json_quote.h"

namespace tombolo {
std::string number_text(float value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  // Keeps a float recognisable: 1 becomes 1.0.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string default_text(const AttrSpec& spec) {
  if (!spec.has_default) return "null";
  switch (spec.type) {
    case AttrType::kInt:
      return std::to_string(spec.i);
    case AttrType::kFloat:
      return number_text(spec.f);
    case AttrType::kString:
      return json_quote(spec.s);
    case AttrType::kInts:
      return '[' + joined(spec.ints, [](int64_t i) { return std::to_string(i); }) + ']';
    case AttrType::kStrings:
      return '[' + joined(spec.strings, [](Literal s) { return json_quote(s); }) + ']';
    default:
      return "null";
  }
}

}  // namespace tombolo
