// Values of annotations: strings, numbers, lists, hexadecimal bytes.

#include "ir/text/number.h"
#include "ir/text/parser_impl.h"

namespace tombolo::text {

bool Parser::text_value(Text& out) {
  Text found;
  if (!quoted(found, "a string")) return false;
  out = keep(found);
  return charge(out.size());
}

bool Parser::hex_value(Text& out) {
  Text digits;
  peek();
  const size_t at = position();
  if (!quoted(digits, "bytes as a string of hex digits")) return false;
  auto block = storage().allocate(digits.size() / 2);
  if (!read_hex(digits, reinterpret_cast<char*>(block.data())))
    return fail("expected an even number of hex digits", {}, at);
  out = block.empty() ? Text("") : Text(reinterpret_cast<const char*>(block.data()), block.size());
  return charge(out.size());
}

bool Parser::int32_value(int32_t& out) {
  int64_t value;
  peek();
  const size_t at = position();
  if (!number(value, "an integer")) return false;
  if (value < INT32_MIN || value > INT32_MAX)
    return fail("the number " + std::to_string(value) + " needs more than 32 bits", {}, at);
  out = static_cast<int32_t>(value);
  return true;
}

bool Parser::ints_value(std::vector<int64_t>& out) {
  return list(out, [&](int64_t& item) { return number(item, "an integer"); });
}

bool Parser::texts_value(std::vector<Text>& out) {
  return list(out, [&](Text& item) { return text_value(item); });
}

bool Parser::string_entry(StringEntry& out) {
  static constexpr std::string_view kKeys[] = {"unknown"};
  if (!text_value(out.key) || !expect(':', "after the key") || !text_value(out.value)) return false;
  return annotation(kKeys, [&](size_t) { return hex_value(out.unknown); });
}

bool Parser::string_entries(std::vector<StringEntry>& out) {
  return list(out, [&](StringEntry& item) { return string_entry(item); });
}

bool Parser::too_large() {
  return fail_resource("the graph needs more memory than allowed",
                       "raise the memory limit to read a graph of this size");
}

bool Parser::too_deep() {
  return depth_ <= kMaxDepth ||
         fail("nested more than " + std::to_string(kMaxDepth) + " levels deep");
}

Text Parser::intern(Text text) {
  if (text.empty()) return "";
  if (auto found = interned_.find(text); found != interned_.end()) return *found;
  return *interned_.insert(keep(text)).first;
}

}  // namespace tombolo::text
