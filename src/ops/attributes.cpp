#include "ops/attributes.h"

namespace tombolo {

namespace {
/// Calls may nest (a function that calls a function ...); the checker bounds the depth at 100.
constexpr int kMaxCallDepth = 200;

const Attribute* resolve(const Attribute* attribute, const AttributeBinding* binding) {
  for (int depth = 0; attribute != nullptr && attribute->is_reference(); ++depth) {
    if (binding == nullptr || depth > kMaxCallDepth) return nullptr;
    const Attribute* found = nullptr;
    for (const Attribute* given : binding->given)
      if (given != nullptr && given->name == attribute->ref_attr_name()) found = given;
    if (found != nullptr) {
      attribute = found;
      binding = binding->outer;
      continue;
    }
    for (const Attribute& fallback : binding->defaults)
      if (fallback.name == attribute->ref_attr_name()) return &fallback;
    return nullptr;
  }
  return attribute;
}
}  // namespace

const Attribute* AttributeBinding::find(Text name) const {
  for (const Attribute* attribute : given)
    if (attribute != nullptr && attribute->name == name) return resolve(attribute, outer);
  for (const Attribute& attribute : defaults)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

const Attribute* AttributeReader::find(Text name) const {
  for (const Attribute& attribute : node_->attributes())
    if (attribute.name == name) return resolve(&attribute, binding_);
  return nullptr;
}

int64_t AttributeReader::get_int(Text name, int64_t fallback) const {
  return get_int(name).value_or(fallback);
}

std::optional<int64_t> AttributeReader::get_int(Text name) const {
  const Attribute* attribute = find(name);
  const int64_t* value = attribute != nullptr ? attribute->i() : nullptr;
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

float AttributeReader::get_float(Text name, float fallback) const {
  const Attribute* attribute = find(name);
  const float* value = attribute != nullptr ? attribute->f() : nullptr;
  return value != nullptr ? *value : fallback;
}

Text AttributeReader::get_string(Text name, Text fallback) const {
  const Attribute* attribute = find(name);
  const Text* value = attribute != nullptr ? attribute->s() : nullptr;
  return value != nullptr ? *value : fallback;
}

std::span<const int64_t> AttributeReader::get_ints(Text name) const {
  const Attribute* attribute = find(name);
  return attribute != nullptr ? attribute->ints() : std::span<const int64_t>();
}

std::span<const float> AttributeReader::get_floats(Text name) const {
  const Attribute* attribute = find(name);
  return attribute != nullptr ? attribute->floats() : std::span<const float>();
}

std::span<const Text> AttributeReader::get_strings(Text name) const {
  const Attribute* attribute = find(name);
  return attribute != nullptr ? attribute->strings() : std::span<const Text>();
}

const Constant* AttributeReader::get_tensor(Text name) const {
  const Attribute* attribute = find(name);
  return attribute != nullptr ? attribute->tensor() : nullptr;
}

const Graph* AttributeReader::get_graph(Text name) const {
  const Attribute* attribute = find(name);
  return attribute != nullptr ? attribute->graph() : nullptr;
}

const Type* AttributeReader::get_type(Text name) const {
  const Attribute* attribute = find(name);
  return attribute != nullptr ? attribute->type_proto() : nullptr;
}

}  // namespace tombolo
