#include "formats/common/json_view.h"

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>

namespace tombolo {
namespace {

const rapidjson::Value& get(const void* value) {
  return *static_cast<const rapidjson::Value*>(value);
}

/// visit(i) for each character that is no part of a string.
template <typename Visit>
void outside_strings(std::string_view text, Visit&& visit) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted)
      visit(i);
    else if (text[i] == '\\')
      ++i;
  }
}

/// The deepest nesting of brackets outside strings.
size_t depth_of(std::string_view text) {
  size_t depth = 0, deepest = 0;
  outside_strings(text, [&](size_t i) {
    const char c = text[i];
    if (c == '[' || c == '{')
      deepest = std::max(deepest, ++depth);
    else if ((c == ']' || c == '}') && depth != 0)
      --depth;
  });
  return deepest;
}

std::string place(std::string_view text, size_t offset) {
  size_t line = 1, start = 0;
  for (size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') ++line, start = i + 1;
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(offset - start + 1);
}

}  // namespace

std::string_view without_powers_of_zero(std::string_view text, std::string& room) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  bool changed = false;
  outside_strings(text, [&](size_t i) {
    if ((text[i] != 'e' && text[i] != 'E') || i == 0 || !is_digit(text[i - 1])) return;
    for (size_t k = i; k-- > 0 && (is_digit(text[k]) || text[k] == '.');)
      if (text[k] != '0' && text[k] != '.') return;
    size_t end = i + 1;
    if (end < text.size() && (text[end] == '+' || text[end] == '-')) ++end;
    const size_t digits = end;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == digits) return;
    if (!changed) room.assign(text);
    changed = true;
    room.replace(i, end - i, end - i, ' ');
  });
  return changed ? std::string_view(room) : text;
}

Result<JsonDocument> JsonDocument::parse(std::string_view text, size_t max_depth) {
  if (depth_of(text) > max_depth) {
    return parse_error("JSON nested deeper than " + std::to_string(max_depth) + " levels");
  }
  std::string room;
  text = without_powers_of_zero(text, room);
  auto document = std::make_shared<rapidjson::Document>();
  constexpr unsigned kFlags = rapidjson::kParseNanAndInfFlag | rapidjson::kParseIterativeFlag |
                              rapidjson::kParseFullPrecisionFlag;
  document->Parse<kFlags>(text.data(), text.size());
  if (document->HasParseError()) {
    return parse_error(std::string("not valid JSON at ") + place(text, document->GetErrorOffset()) +
                       ": " + rapidjson::GetParseError_En(document->GetParseError()));
  }
  JsonDocument result;
  result.document_ = std::move(document);
  return result;
}

Json JsonDocument::root() const {
  if (!document_) return Json();
  return Json(static_cast<const rapidjson::Value*>(
      static_cast<const rapidjson::Document*>(document_.get())));
}

bool Json::is_null() const { return !value_ || get(value_).IsNull(); }
bool Json::is_bool() const { return value_ && get(value_).IsBool(); }
bool Json::is_number() const { return value_ && get(value_).IsNumber(); }
bool Json::is_int() const { return value_ && get(value_).IsInt64(); }
bool Json::is_string() const { return value_ && get(value_).IsString(); }
bool Json::is_array() const { return value_ && get(value_).IsArray(); }
bool Json::is_object() const { return value_ && get(value_).IsObject(); }

size_t Json::size() const {
  if (is_array()) return get(value_).Size();
  if (is_object()) return get(value_).MemberCount();
  return 0;
}

Json Json::operator[](std::string_view key) const {
  if (!is_object()) return Json();
  const rapidjson::Value name(rapidjson::StringRef(key.data() ? key.data() : "", key.size()));
  const auto found = get(value_).FindMember(name);
  return found == get(value_).MemberEnd() ? Json() : Json(&found->value);
}

Json Json::at(size_t index) const {
  if (!is_array() || index >= size()) return Json();
  return Json(&get(value_)[static_cast<rapidjson::SizeType>(index)]);
}

std::string_view Json::key(size_t index) const {
  if (!is_object() || index >= size()) return {};
  const auto& name = (get(value_).MemberBegin() + static_cast<ptrdiff_t>(index))->name;
  return {name.GetString(), name.GetStringLength()};
}

Json Json::member(size_t index) const {
  if (!is_object() || index >= size()) return Json();
  return Json(&(get(value_).MemberBegin() + static_cast<ptrdiff_t>(index))->value);
}

std::optional<int64_t> Json::as_int() const {
  if (is_bool()) return get(value_).GetBool() ? 1 : 0;
  if (is_int()) return get(value_).GetInt64();
  if (!is_number() || !get(value_).IsDouble()) return std::nullopt;
  const double number = get(value_).GetDouble();
  if (!(std::abs(number) < 9e15) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::optional<double> Json::as_double() const {
  if (is_bool()) return get(value_).GetBool() ? 1.0 : 0.0;
  if (!is_number()) return std::nullopt;
  return get(value_).GetDouble();
}

std::optional<std::string_view> Json::as_string() const {
  if (!is_string()) return std::nullopt;
  return std::string_view(get(value_).GetString(), get(value_).GetStringLength());
}

bool Json::bool_or(bool fallback) const {
  const auto number = as_double();
  return number ? *number != 0.0 : fallback;
}

std::optional<std::vector<int64_t>> Json::as_ints() const {
  if (!is_array()) return std::nullopt;
  std::vector<int64_t> result;
  for (size_t i = 0; i < size(); ++i) {
    const auto value = at(i).as_int();
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::string Json::to_string(size_t limit) const {
  if (!value_) return "nothing";
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>
      writer(buffer);
  get(value_).Accept(writer);
  std::string text(buffer.GetString(), buffer.GetSize());
  if (text.size() > limit) text = text.substr(0, limit) + "...";
  return text;
}

}  // namespace tombolo
