#include "ops/function_text.h"

#include "base/json_quote.h"
#include "ops/json_text.h"

namespace tombolo {
namespace {

std::string names(std::span<const ResolvedParam> params) {
  std::string out;
  for (const ResolvedParam& param : params) {
    if (!out.empty()) out += ", ";
    out += param.name;
  }
  return out;
}

/// `name: type = default`, or the bare name where there is none.
std::string attribute_text(const AttrDecl& row) {
  std::string out(std::string_view(row.name));
  if (!row.spec.has_default) return out;
  out += ": ";
  for (const char c : to_string(row.spec.type)) out += static_cast<char>(c | 0x20);  // lower case
  return out + " = " + default_text(row.spec);
}

}  // namespace

std::string function_text(const OpVersion& version, int opset, std::string_view body) {
  const OpDecl& op = *version.decl;
  std::string out = "<domain: " + json_quote(op.domain) + ", opset_import: [\"\" : ";
  out += std::to_string(opset) + "]>\n" + std::string(std::string_view(op.name));
  if (!version.attributes.empty()) {
    std::string attributes;
    for (const AttrDecl* row : version.attributes) {
      if (!attributes.empty()) attributes += ", ";
      attributes += attribute_text(*row);
    }
    out += " <" + attributes + ">";
  }
  out += " (" + names(version.inputs) + ") => (" + names(version.outputs) + ") {\n";
  out += body;
  return out + "}\n";
}

Result<std::string> function_text(const FunctionBody& row, FunctionContext& context) {
  if (row.builder) {
    CHECK_OK(row.builder(context));
    return function_text(context.version, row.opset, context.body);
  }
  if (!row.text.empty()) return function_text(context.version, row.opset, row.text);
  return unsupported("the function body of " +
                     std::string(std::string_view(context.version.decl->name)) +
                     " is not written yet");
}

const FunctionBody* function_body(const OpVersion& version, int opset) {
  const FunctionBody* best = nullptr;
  for (const FunctionBody* row : version.functions)
    if (row->opset <= opset && (!best || row->opset > best->opset)) best = row;
  return best;
}

}  // namespace tombolo
