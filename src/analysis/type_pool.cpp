#include "analysis/type_pool.h"

namespace tombolo {

namespace {
size_t mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15u + (seed >> 31);
}
size_t hash_of(const SymShape& shape) {
  size_t hash = shape.size();
  for (const SymDim& dim : shape) hash = mix(hash, dim.hash());
  return hash;
}
size_t hash_of(const InferType& type) {
  size_t hash = mix(static_cast<size_t>(type.kind), static_cast<size_t>(type.elem));
  hash = mix(hash, static_cast<size_t>(type.key));
  if (type.shape) hash = mix(hash, hash_of(*type.shape));
  if (type.element) hash = mix(hash, hash_of(*type.element));
  return hash;
}
bool same_elements(const SymShape& a, const SymShape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i].is_unknown() && b[i].is_unknown()) && !a[i].equals(b[i])) return false;
  return true;
}
}  // namespace

bool same_kind(const InferType& a, const InferType& b) {
  if (a.kind != b.kind || a.elem != b.elem || a.key != b.key) return false;
  if ((a.element == nullptr) != (b.element == nullptr)) return false;
  return a.element == nullptr || a.element == b.element || same_kind(*a.element, *b.element);
}

bool same_type(const InferType& a, const InferType& b) {
  if (a.kind != b.kind || a.elem != b.elem || a.key != b.key) return false;
  if (a.shape.has_value() != b.shape.has_value()) return false;
  if (a.shape && !same_elements(*a.shape, *b.shape)) return false;
  if ((a.element == nullptr) != (b.element == nullptr)) return false;
  return a.element == nullptr || a.element == b.element || same_type(*a.element, *b.element);
}

const InferType* TypePool::intern(InferType type) {
  const size_t hash = hash_of(type);
  const auto [begin, end] = types_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (same_type(*it->second, type)) return it->second.get();
  if (type.shape) type.shape->shrink_to_fit();
  return types_.emplace(hash, std::make_unique<const InferType>(std::move(type)))->second.get();
}

const SymShape* TypePool::intern(SymShape elements) {
  const size_t hash = hash_of(elements);
  const auto [begin, end] = values_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (same_elements(*it->second, elements)) return it->second.get();
  elements.shrink_to_fit();
  return values_.emplace(hash, std::make_unique<const SymShape>(std::move(elements)))->second.get();
}

InferType from_declared(const Type& type) {
  InferType out;
  out.kind = type.kind;
  switch (type.kind) {
    case Type::Kind::kTensor:
    case Type::Kind::kSparseTensor:
      out.elem = type.dtype();
      if (type.has_shape) {
        SymShape shape;
        shape.reserve(type.dims.size());
        for (const Dim& dim : type.dims) {
          SymDim known;
          if (dim.kind == Dim::Kind::kValue) known = SymDim(dim.value);
          if (dim.kind == Dim::Kind::kParam) known = SymDim::parse(dim.param);
          if (known.is_value() && known.value() < 0) known = SymDim();
          shape.push_back(std::move(known));
        }
        out.shape = std::move(shape);
      }
      break;
    case Type::Kind::kMap:
      out.key = dtype_from_number(type.key_type).value_or(DType::kUndefined);
      [[fallthrough]];
    case Type::Kind::kSequence:
    case Type::Kind::kOptional:
      if (type.element != nullptr)
        out.element = std::make_shared<const InferType>(from_declared(*type.element));
      break;
    case Type::Kind::kOpaque:
    case Type::Kind::kNone:
      break;
  }
  return out;
}

InferType from_constant(const Constant& constant) {
  SymShape shape;
  for (const int64_t dim : constant.dims.span()) shape.push_back(dim < 0 ? SymDim() : SymDim(dim));
  return InferType::tensor(constant.dtype(), std::move(shape));
}

Type to_declared(const InferType& type, Storage& storage) {
  switch (type.kind) {
    case Type::Kind::kTensor:
    case Type::Kind::kSparseTensor: {
      Type out = Type::tensor(type.elem);
      out.kind = type.kind;
      if (type.shape) {
        out.has_shape = true;
        for (const SymDim& dim : *type.shape) {
          if (dim.is_value()) {
            out.dims.push_back(Dim::of(dim.value()));
            continue;
          }
          const std::string text = dim.is_unknown() ? "" : dim.to_string();
          const bool unnamed = text.empty() || text.find(kUnnamedMark) != std::string::npos;
          out.dims.push_back(unnamed ? Dim() : Dim::named(storage.copy(text)));
        }
      }
      return out;
    }
    case Type::Kind::kSequence:
    case Type::Kind::kOptional:
    case Type::Kind::kMap: {
      const Type* element =
          type.element ? storage.intern(to_declared(*type.element, storage)) : nullptr;
      if (type.kind == Type::Kind::kMap) return Type::map(type.key, element);
      return type.kind == Type::Kind::kSequence ? Type::sequence(element) : Type::optional(element);
    }
    case Type::Kind::kOpaque:
    case Type::Kind::kNone:
      break;
  }
  Type out;
  out.kind = type.kind;
  return out;
}

std::string shape_text(const SymShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ',';
    const std::string dim = shape[i].to_string();
    text += dim.find(kUnnamedMark) == std::string::npos ? dim : "?";
  }
  return text + "]";
}

std::string kind_text(const InferType& type) {
  const auto element = [&type] {
    return type.element ? kind_text(*type.element) : std::string("?");
  };
  const std::string elem =
      type.elem == DType::kUndefined ? std::string("?") : std::string(name_of(type.elem));
  switch (type.kind) {
    case Type::Kind::kTensor:
      return "tensor(" + elem + ")";
    case Type::Kind::kSparseTensor:
      return "sparse_tensor(" + elem + ")";
    case Type::Kind::kSequence:
      return "seq(" + element() + ")";
    case Type::Kind::kOptional:
      return "optional(" + element() + ")";
    case Type::Kind::kMap:
      return "map(" + std::string(name_of(type.key)) + ", " +
             (type.element && type.element->is_tensor() ? std::string(name_of(type.element->elem))
                                                        : element()) +
             ")";
    case Type::Kind::kOpaque:
      return "opaque";
    case Type::Kind::kNone:
      break;
  }
  return "?";
}

std::string type_text(const InferType& type) {
  if (!type.is_tensor()) return kind_text(type);
  const std::string elem =
      type.elem == DType::kUndefined ? std::string("?") : std::string(name_of(type.elem));
  return elem + (type.shape ? (type.shape->empty() ? "" : shape_text(*type.shape)) : "[...]");
}

Merge merge_types(const InferType& declared, const InferType& inferred) {
  Merge out;
  if (inferred.kind == Type::Kind::kNone) {
    out.type = declared;
    return out;
  }
  if (declared.kind == Type::Kind::kNone) {
    out.type = inferred;
    out.adds_info = true;
    return out;
  }
  out.type = inferred;
  if (declared.kind != inferred.kind) {
    // A sparse tensor and a dense one are told apart by initialisers only.
    out.conflict = Merge::Conflict::kKind;
    return out;
  }
  const auto merge_number = [&out](DType a, DType b, DType& to) {
    if (a != DType::kUndefined && b != DType::kUndefined && a != b)
      out.conflict = Merge::Conflict::kKind;
    to = b != DType::kUndefined ? b : a;
    if (a == DType::kUndefined && b != DType::kUndefined) out.adds_info = true;
  };
  merge_number(declared.elem, inferred.elem, out.type.elem);
  merge_number(declared.key, inferred.key, out.type.key);
  if (declared.element && inferred.element) {
    Merge inner = merge_types(*declared.element, *inferred.element);
    // Elements of a sequence may have different shapes: only their kind can conflict.
    if (inner.conflict == Merge::Conflict::kKind) out.conflict = Merge::Conflict::kKind;
    out.adds_info |= inner.adds_info;
    out.type.element = std::make_shared<const InferType>(
        inner.conflict == Merge::Conflict::kNone ? std::move(inner.type) : *inferred.element);
  } else if (declared.element) {
    out.type.element = declared.element;
  } else if (inferred.element) {
    out.adds_info = true;
  }
  if (declared.shape && inferred.shape) {
    if (declared.shape->size() != inferred.shape->size()) {
      if (out.conflict == Merge::Conflict::kNone) out.conflict = Merge::Conflict::kRank;
      return out;
    }
    for (size_t i = 0; i < declared.shape->size(); ++i) {
      const SymDim& a = (*declared.shape)[i];
      const SymDim& b = (*inferred.shape)[i];
      SymDim& to = (*out.type.shape)[i];
      if (a.differs(b) && out.conflict == Merge::Conflict::kNone) {
        out.conflict = Merge::Conflict::kDim;
        out.axis = i;
        out.provable = a.is_value() && b.is_value();
      }
      if (b.is_value()) {
        to = b;
        if (!a.is_value()) out.adds_info = true;
      } else if (a.is_value() || b.is_unknown()) {
        to = a;
      } else if (a.is_unknown()) {
        out.adds_info = true;
      }
    }
  } else if (declared.shape) {
    out.type.shape = declared.shape;
  } else if (inferred.shape) {
    out.adds_info = true;
  }
  return out;
}

}  // namespace tombolo
