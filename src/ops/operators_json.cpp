#include "ops/operators_json.h"

#include <charconv>

#include "ir/attr_type.h"
#include "ops/registry.h"

namespace tombolo {
namespace {

// The texts are our own literals: printable ASCII. Quotes and backslashes are escaped.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string number(float value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  // Keeps a float recognisable: 1 becomes 1.0.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string_view bool_text(bool value) { return value ? "true" : "false"; }

/// Items joined by commas; `print(item)` gives the text of one.
template <typename Items, typename Print>
std::string joined(const Items& items, Print print) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += ',';
    out += print(item);
  }
  return out;
}

std::string default_json(const AttrSpec& spec) {
  if (!spec.has_default) return "null";
  switch (spec.type) {
    case AttrType::kInt:
      return std::to_string(spec.i);
    case AttrType::kFloat:
      return number(spec.f);
    case AttrType::kString:
      return quoted(spec.s);
    case AttrType::kInts:
      return '[' + joined(spec.ints, [](int64_t i) { return std::to_string(i); }) + ']';
    case AttrType::kStrings:
      return '[' + joined(spec.strings, [](Literal s) { return quoted(s); }) + ']';
    default:
      return "null";
  }
}

std::string param_json(const ResolvedParam& param) {
  static constexpr std::string_view kOptions[] = {"single", "optional", "variadic"};
  return "{\"name\":" + quoted(param.name) + ",\"type\":" + quoted(param.type) +
         ",\"option\":" + quoted(kOptions[static_cast<size_t>(param.option)]) +
         ",\"min_arity\":" + std::to_string(param.min_arity) +
         ",\"homogeneous\":" + std::string(bool_text(param.homogeneous)) + '}';
}

std::string attribute_json(const AttrDecl* row) {
  return "{\"name\":" + quoted(row->name) + ",\"type\":" + quoted(to_string(row->spec.type)) +
         ",\"required\":" + std::string(bool_text(row->spec.required)) +
         ",\"default\":" + default_json(row->spec) + '}';
}

std::string type_json(const ResolvedType& type) {
  return quoted(type.name) + ":[" +
         joined(type_strings(type.allowed), [](const std::string& s) { return quoted(s); }) + ']';
}

std::string version_json(const OpVersion& version) {
  const OpDecl& op = *version.decl;
  std::string out = "{\"domain\":" + quoted(op.domain) + ",\"name\":" + quoted(op.name);
  out += ",\"since_version\":" + std::to_string(version.since);
  out += ",\"deprecated\":" + std::string(bool_text(version.deprecated));
  out += ",\"doc\":" + quoted(op.doc);
  out += ",\"inputs\":[" + joined(version.inputs, param_json);
  out += "],\"outputs\":[" + joined(version.outputs, param_json);
  out += "],\"attributes\":[" + joined(version.attributes, attribute_json);
  out += "],\"types\":{" + joined(version.types, type_json);
  out += "},\"min_inputs\":" + std::to_string(version.min_inputs);
  out += ",\"min_outputs\":" + std::to_string(version.min_outputs);
  out += ",\"function\":" + std::string(bool_text(version.has_function())) + '}';
  return out;
}

}  // namespace

std::string operators_json() {
  std::string out = "{\"operators\":[\n";
  bool first = true;
  for (const OpVersion& version : all_versions()) {
    if (!first) out += ",\n";
    first = false;
    out += version_json(version);
  }
  return out + "\n]}\n";
}

}  // namespace tombolo
