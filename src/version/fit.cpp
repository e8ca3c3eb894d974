#include "version/fit.h"

#include <algorithm>
#include <vector>

#include "base/dtype.h"

namespace tombolo {
namespace {

bool same_default(const AttrSpec& a, const AttrSpec& b) {
  return a.type == b.type && a.has_default == b.has_default && a.i == b.i && a.f == b.f &&
         std::string_view(a.s) == std::string_view(b.s) &&
         std::equal(a.ints.begin(), a.ints.end(), b.ints.begin(), b.ints.end());
}

bool allowed(const InferType& type, const ResolvedParam& param) {
  const DType elem = element_type(&type);
  if (elem == DType::kUndefined) return true;
  switch (type.kind) {
    case Type::Kind::kTensor:
      return param.allowed.has_tensor(elem);
    case Type::Kind::kSequence:
      return param.allowed.has_sequence(elem);
    case Type::Kind::kOptional:
      return param.allowed.has_optional(elem) || param.allowed.has_optional_sequence(elem);
    default:
      return true;
  }
}

std::optional<Misfit> type_misfit(std::span<Value* const> values,
                                  std::span<const ResolvedParam> params,
                                  const Inference& inference) {
  for (size_t i = 0; i < values.size() && !params.empty(); ++i) {
    if (values[i] == nullptr) continue;
    const ResolvedParam& param = params[std::min(i, params.size() - 1)];
    const InferType* type = inference.type(*values[i]);
    if (type == nullptr || allowed(*type, param)) continue;
    return Misfit{std::string(param.name) + " may not be " + kind_text(*type),
                  type->is_tensor() ? type->elem : DType::kUndefined};
  }
  return std::nullopt;
}

/// Values whose types the older version binds together must have one type.
std::optional<Misfit> binding_misfit(const Node& node, const OpVersion& older,
                                     const Inference& inference) {
  std::vector<DType> bound(older.types.size(), DType::kUndefined);
  const auto agree = [&](std::span<Value* const> values, std::span<const ResolvedParam> params) {
    for (size_t i = 0; i < values.size() && !params.empty(); ++i) {
      const ResolvedParam& param = params[std::min(i, params.size() - 1)];
      if (values[i] == nullptr || param.type_var < 0 || !param.homogeneous) continue;
      const DType elem = element_type(inference.type(*values[i]));
      DType& one = bound[static_cast<size_t>(param.type_var)];
      if (elem != DType::kUndefined && one != DType::kUndefined && elem != one) return false;
      if (elem != DType::kUndefined) one = elem;
    }
    return true;
  };
  if (agree(node.inputs(), older.inputs) && agree(node.outputs(), older.outputs))
    return std::nullopt;
  return Misfit{"it wanted inputs of one type"};
}

size_t used(std::span<Value* const> values) {
  size_t count = values.size();
  while (count > 0 && values[count - 1] == nullptr) --count;
  return count;
}

}  // namespace

DType element_type(const InferType* type) {
  while (type != nullptr && !type->is_tensor() && type->element != nullptr)
    type = type->element.get();
  return type != nullptr ? type->elem : DType::kUndefined;
}

bool is_default(const Attribute& attribute, const AttrSpec& spec) {
  if (!spec.has_default || attribute.is_reference()) return false;
  switch (spec.type) {
    case AttrType::kInt:
      return attribute.i() != nullptr && *attribute.i() == spec.i;
    case AttrType::kFloat:
      return attribute.f() != nullptr && *attribute.f() == spec.f;
    case AttrType::kString:
      return attribute.s() != nullptr && *attribute.s() == std::string_view(spec.s);
    case AttrType::kInts:
      return attribute.type == AttrType::kInts &&
             std::equal(attribute.ints().begin(), attribute.ints().end(), spec.ints.begin(),
                        spec.ints.end());
    default:
      return false;
  }
}

std::optional<Misfit> misfit(const Node& node, const OpVersion& older, const OpVersion& newer,
                             const Inference& inference) {
  if (older.deprecated && !newer.deprecated) return Misfit{"it was deprecated there"};
  const size_t inputs = used(node.inputs()), outputs = used(node.outputs());
  if (inputs > older.max_inputs)
    return Misfit{"it had no more than " + std::to_string(older.max_inputs) + " inputs"};
  if (inputs < older.min_inputs)
    return Misfit{"it needed " + std::to_string(older.min_inputs) + " inputs"};
  if (outputs > older.max_outputs)
    return Misfit{"it had no more than " + std::to_string(older.max_outputs) + " outputs"};
  for (const Attribute& attribute : node.attributes()) {
    if (attribute.name.starts_with("__")) continue;  // outside the schema
    const AttrDecl* then = older.attribute(attribute.name);
    const AttrDecl* now = newer.attribute(attribute.name);
    if (then == nullptr && now == nullptr) continue;  // unknown already: the checker says so
    if (then == nullptr && !is_default(attribute, now->spec))
      return Misfit{"it had no attribute " + std::string(attribute.name)};
    if (then != nullptr && now != nullptr && then->spec.type != now->spec.type)
      return Misfit{"its attribute " + std::string(attribute.name) + " had another type"};
  }
  for (const AttrDecl* then : older.attributes)
    if (then->spec.required && node.attribute(then->name) == nullptr) {
      const AttrDecl* now = newer.attribute(then->name);
      if (now == nullptr || !now->spec.has_default)
        return Misfit{"it needed the attribute " + std::string(std::string_view(then->name))};
    }
  if (auto found = type_misfit(node.inputs(), older.inputs, inference)) return found;
  if (auto found = type_misfit(node.outputs(), older.outputs, inference)) return found;
  return binding_misfit(node, older, inference);
}

void adopt(Node& node, const OpVersion& older, const OpVersion& newer) {
  std::erase_if(node.attributes(), [&](const Attribute& attribute) {
    return older.attribute(attribute.name) == nullptr && newer.attribute(attribute.name) != nullptr;
  });
  for (const AttrDecl* then : older.attributes) {
    if (node.attribute(then->name) != nullptr) continue;
    const AttrDecl* now = newer.attribute(then->name);
    if (now == nullptr || !now->spec.has_default || same_default(then->spec, now->spec)) continue;
    if (now->spec.type == AttrType::kInt) node.set_int(then->name, now->spec.i);
    if (now->spec.type == AttrType::kFloat) node.set_float(then->name, now->spec.f);
    if (now->spec.type == AttrType::kString)
      node.set_string(then->name, std::string_view(now->spec.s));
  }
  while (!node.inputs().empty() && node.inputs().back() == nullptr)
    node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
}

}  // namespace tombolo
