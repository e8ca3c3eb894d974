#include "ops/operators_json.h"

#include "base/json_quote.h"
#include "ir/attr_type.h"
#include "ops/function_text.h"
#include "ops/json_text.h"
#include "ops/registry.h"

namespace tombolo {
namespace {

std::string_view bool_text(bool value) { return value ? "true" : "false"; }

std::string param_json(const ResolvedParam& param) {
  static constexpr std::string_view kOptions[] = {"single", "optional", "variadic"};
  return "{\"name\":" + json_quote(param.name) + ",\"type\":" + json_quote(param.type) +
         ",\"option\":" + json_quote(kOptions[static_cast<size_t>(param.option)]) +
         ",\"min_arity\":" + std::to_string(param.min_arity) +
         ",\"homogeneous\":" + std::string(bool_text(param.homogeneous)) + '}';
}

std::string attribute_json(const AttrDecl* row) {
  return "{\"name\":" + json_quote(row->name) +
         ",\"type\":" + json_quote(to_string(row->spec.type)) +
         ",\"required\":" + std::string(bool_text(row->spec.required)) +
         ",\"default\":" + default_text(row->spec) + '}';
}

std::string type_json(const ResolvedType& type) {
  return json_quote(type.name) + ":[" +
         joined(type_strings(type.allowed), [](const std::string& s) { return json_quote(s); }) +
         ']';
}

std::string function_json(const OpVersion& version, const FunctionBody& row) {
  // A builder's text depends on the node: null here.
  return "{\"opset\":" + std::to_string(row.opset) + ",\"text\":" +
         (row.text.empty() ? "null" : json_quote(function_text(version, row.opset, row.text))) +
         '}';
}

std::string version_json(const OpVersion& version) {
  const OpDecl& op = *version.decl;
  std::string out = "{\"domain\":" + json_quote(op.domain) + ",\"name\":" + json_quote(op.name);
  out += ",\"since_version\":" + std::to_string(version.since);
  out += ",\"deprecated\":" + std::string(bool_text(version.deprecated));
  out += ",\"doc\":" + json_quote(op.doc);
  out += ",\"inputs\":[" + joined(version.inputs, param_json);
  out += "],\"outputs\":[" + joined(version.outputs, param_json);
  out += "],\"attributes\":[" + joined(version.attributes, attribute_json);
  out += "],\"types\":{" + joined(version.types, type_json);
  out += "},\"min_inputs\":" + std::to_string(version.min_inputs);
  out += ",\"min_outputs\":" + std::to_string(version.min_outputs);
  out += ",\"function\":" + std::string(bool_text(version.has_function()));
  out += ",\"functions\":[" +
         joined(version.functions,
                [&](const FunctionBody* row) { return function_json(version, *row); }) +
         "]}";
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
