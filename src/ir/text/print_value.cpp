// Types and attributes.

#include "ir/text/attribute_names.h"
#include "ir/text/printer_impl.h"

namespace tombolo::text {

void Printer::type(const Type* type) {
  if (type == nullptr) {
    put('?');
    return;
  }
  auto element_name = [&](int32_t number) {
    const auto dtype = dtype_from_number(number);
    put(dtype ? name_of(*dtype) : std::string_view("undefined"));
  };
  auto tensor = [&] {
    element_name(type->elem_type);
    if (type->has_shape && type->dims.empty()) return;
    put('[');
    list(type->dims, ",", [&](const Dim& item) { dim(item); });
    put(']');
  };
  switch (type->kind) {
    case Type::Kind::kNone:
      put("?");
      break;
    case Type::Kind::kTensor:
      tensor();
      break;
    case Type::Kind::kSparseTensor:
      put("sparse_tensor(");
      tensor();
      put(')');
      break;
    case Type::Kind::kSequence:
    case Type::Kind::kOptional:
      put(type->kind == Type::Kind::kSequence ? "seq(" : "optional(");
      this->type(type->element);
      put(')');
      break;
    case Type::Kind::kMap:
      put("map(");
      element_name(type->key_type);
      put(", ");
      this->type(type->element);
      put(')');
      break;
    case Type::Kind::kOpaque:
      opaque(*type);
      break;
  }
  type_annotation(*type);
}

void Printer::type_annotation(const Type& type) {
  Annotation fields(*this, type.kind == Type::Kind::kNone ? "@{" : " @{");
  fields.text("denotation", type.denotation);
  if (type.has_elem_type && !dtype_from_number(type.elem_type))
    fields.number("elem_type", type.elem_type);
  if (type.has_key_type && !dtype_from_number(type.key_type))
    fields.number("key_type", type.key_type);
  fields.hex("unknown", type.unknown);
  fields.hex("unknown_inner", type.unknown_inner);
  fields.hex("unknown_shape", type.unknown_shape);
  // `?` alone is no type at all.
  if (type.kind == Type::Kind::kNone && fields.empty()) put("@{}");
}

void Printer::dim(const Dim& dim) {
  switch (dim.kind) {
    case Dim::Kind::kUnknown:
      if (dim.value < 0)
        number(dim.value);
      else
        put('?');
      break;
    case Dim::Kind::kValue:
      number(dim.value);
      break;
    case Dim::Kind::kParam:
      name(dim.param);
      break;
  }
  Annotation fields(*this);
  fields.text("denotation", dim.denotation);
  fields.hex("unknown", dim.unknown);
}

void Printer::opaque(const Type& type) {
  auto part = [&](Text text) {
    if (present(text))
      qualified(text);
    else
      put('?');
  };
  put("opaque(");
  if (present(type.opaque_domain)) {
    part(type.opaque_domain);
    put(',');
    part(type.opaque_name);
  } else if (present(type.opaque_name)) {
    part(type.opaque_name);
  }
  put(')');
}

void Printer::attribute(const Attribute& attribute) {
  name(attribute.name);
  const bool reference = attribute.is_reference();
  const bool empty = std::holds_alternative<std::monostate>(attribute.value);
  const auto number = static_cast<int32_t>(attribute.type);
  const bool known = number >= 0 && number <= static_cast<int32_t>(AttrType::kTypes);
  const bool bare_reference = reference && !attribute.has_type && number == 0;
  if (!bare_reference) {
    put(": ");
    put(attribute_type_name(attribute.type));
  }
  {
    Annotation fields(*this);
    if (!known) fields.number("type", number);
    if (!attribute.has_type && !bare_reference) fields.flag("untyped");
    if (attribute.extra != nullptr) {
      fields.text("doc_string", attribute.extra->doc);
      if (!empty) fields.text("ref_attr_name", attribute.extra->ref_attr_name);
      fields.hex("unknown", attribute.extra->unknown);
    }
  }
  put(" = ");
  if (reference && empty) {
    put('@');
    name(attribute.ref_attr_name());
    return;
  }
  attribute_value(attribute);
}

void Printer::attribute_value(const Attribute& attribute) {
  auto each = [&](const auto& items, auto&& item) {
    put('[');
    list(items, ", ", item);
    put(']');
  };
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          // No member is set: what the type defaults to, where there is a way to write it.
          switch (attribute.type) {
            case AttrType::kFloat:
            case AttrType::kInt:
              put('0');
              break;
            case AttrType::kString:
              put("\"\"");
              break;
            case AttrType::kUndefined:
            case AttrType::kTensor:
            case AttrType::kGraph:
            case AttrType::kSparseTensor:
            case AttrType::kType:
              put('?');
              break;
            default:
              put(attribute_type_name(attribute.type) == "undefined" ? "?" : "[]");
          }
        } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int64_t>) {
          number(value);
        } else if constexpr (std::is_same_v<T, Text>) {
          quoted(value);
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
          each(value, [&](float item) { number(item); });
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          integers(value);
        } else if constexpr (std::is_same_v<T, std::vector<Text>>) {
          each(value, [&](Text item) { quoted(item); });
        } else if constexpr (std::is_same_v<T, std::unique_ptr<Constant>>) {
          named_constant(*value);
        } else if constexpr (std::is_same_v<T, std::unique_ptr<Graph>>) {
          graph(*value);
        } else if constexpr (std::is_same_v<T, std::unique_ptr<SparseConstant>>) {
          sparse(*value, value->values.name, false);
        } else if constexpr (std::is_same_v<T, const Type*>) {
          type(value);
        } else if constexpr (std::is_same_v<T, std::vector<Constant>>) {
          each(value, [&](const Constant& item) { named_constant(item); });
        } else if constexpr (std::is_same_v<T, std::vector<std::unique_ptr<Graph>>>) {
          each(value, [&](const std::unique_ptr<Graph>& item) { graph(*item); });
        } else if constexpr (std::is_same_v<T, std::vector<SparseConstant>>) {
          each(value, [&](const SparseConstant& item) { sparse(item, item.values.name, false); });
        } else {
          each(value, [&](const Type* item) { type(item); });
        }
      },
      attribute.value);
}

}  // namespace tombolo::text
