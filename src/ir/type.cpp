#include "ir/type.h"

namespace tombolo {

namespace {
/// Equal, and both absent or both present.
bool same(Text a, Text b) { return present(a) == present(b) && a == b; }
}  // namespace

bool operator==(const Dim& a, const Dim& b) {
  return a.kind == b.kind && a.value == b.value && same(a.param, b.param) &&
         same(a.denotation, b.denotation) && a.unknown == b.unknown;
}

bool operator==(const Type& a, const Type& b) {
  return a.kind == b.kind && a.elem_type == b.elem_type && a.has_elem_type == b.has_elem_type &&
         a.has_shape == b.has_shape && a.dims == b.dims && a.key_type == b.key_type &&
         a.has_key_type == b.has_key_type && a.element == b.element &&
         same(a.opaque_domain, b.opaque_domain) && same(a.opaque_name, b.opaque_name) &&
         same(a.denotation, b.denotation) && a.unknown == b.unknown &&
         a.unknown_inner == b.unknown_inner && a.unknown_shape == b.unknown_shape;
}

DType Type::dtype() const { return dtype_from_number(elem_type).value_or(DType::kUndefined); }

Type Type::tensor(DType dtype) {
  Type type;
  type.kind = Kind::kTensor;
  type.elem_type = static_cast<int32_t>(dtype);
  type.has_elem_type = true;
  return type;
}

Type Type::tensor(DType dtype, std::vector<Dim> dims) {
  Type type = tensor(dtype);
  type.has_shape = true;
  type.dims = std::move(dims);
  return type;
}

Type Type::sparse_tensor(DType dtype, std::vector<Dim> dims) {
  Type type = tensor(dtype, std::move(dims));
  type.kind = Kind::kSparseTensor;
  return type;
}

Type Type::sequence(const Type* element) {
  Type type;
  type.kind = Kind::kSequence;
  type.element = element;
  return type;
}

Type Type::optional(const Type* element) {
  Type type = sequence(element);
  type.kind = Kind::kOptional;
  return type;
}

Type Type::map(DType key, const Type* value) {
  Type type = sequence(value);
  type.kind = Kind::kMap;
  type.key_type = static_cast<int32_t>(key);
  type.has_key_type = true;
  return type;
}

std::string schema_name(const Type& type) {
  const auto element = [&] { return type.element ? schema_name(*type.element) : std::string("?"); };
  switch (type.kind) {
    case Type::Kind::kTensor:
      return "tensor(" + std::string(name_of(type.dtype())) + ")";
    case Type::Kind::kSparseTensor:
      return "sparse_tensor(" + std::string(name_of(type.dtype())) + ")";
    case Type::Kind::kSequence:
      return "seq(" + element() + ")";
    case Type::Kind::kOptional:
      return "optional(" + element() + ")";
    case Type::Kind::kMap:
      return "map(" +
             std::string(name_of(dtype_from_number(type.key_type).value_or(DType::kUndefined))) +
             "," + element() + ")";
    case Type::Kind::kOpaque:
      return "opaque(" + std::string(type.opaque_domain) + "," + std::string(type.opaque_name) +
             ")";
    case Type::Kind::kNone:
      break;
  }
  return "?";
}

std::string to_string(const Type& type) {
  if (type.kind != Type::Kind::kTensor && type.kind != Type::Kind::kSparseTensor) {
    const std::string inner = type.element ? to_string(*type.element) : std::string("?");
    switch (type.kind) {
      case Type::Kind::kSequence:
        return "seq(" + inner + ")";
      case Type::Kind::kOptional:
        return "optional(" + inner + ")";
      case Type::Kind::kMap:
        return "map(" +
               std::string(name_of(dtype_from_number(type.key_type).value_or(DType::kUndefined))) +
               "," + inner + ")";
      default:
        return schema_name(type);
    }
  }
  std::string text(name_of(type.dtype()));
  if (type.kind == Type::Kind::kSparseTensor) text = "sparse_tensor(" + text;
  if (!type.has_shape) {
    text += "[]";
  } else if (!type.dims.empty()) {
    text += '[';
    for (size_t i = 0; i < type.dims.size(); ++i) {
      if (i != 0) text += ',';
      const Dim& dim = type.dims[i];
      if (dim.kind == Dim::Kind::kValue)
        text += std::to_string(dim.value);
      else
        text += dim.kind == Dim::Kind::kParam && !dim.param.empty() ? std::string(dim.param) : "?";
    }
    text += ']';
  }
  if (type.kind == Type::Kind::kSparseTensor) text += ')';
  return text;
}

}  // namespace tombolo
