// Types: `float[N,3]`, `seq(T)`, `map(K,T)`, `optional(T)`, `sparse_tensor(float[N])`,
// `opaque(domain,name)`, `?`.

#include "ir/text/parser_impl.h"

namespace tombolo::text {

namespace {

constexpr std::string_view kKeywords[] = {"seq", "map", "optional", "sparse_tensor", "opaque"};

/// The number of an element type's name; `undefined` is none (0).
bool element_type(std::string_view word, int32_t& number, bool& has) {
  if (word == "undefined") {
    number = 0;
    has = false;
    return true;
  }
  const auto dtype = dtype_from_name(word);
  if (!dtype || *dtype == DType::kUndefined) return false;
  number = static_cast<int32_t>(*dtype);
  has = true;
  return true;
}

std::string type_hint(std::string_view word) {
  std::vector<std::string_view> all(std::begin(kKeywords), std::end(kKeywords));
  for (size_t i = 1; i < kDTypeCount; ++i) all.push_back(kDTypes[i].name);
  return suggest(word, all);
}

}  // namespace

bool Parser::fail_type(std::string_view word, size_t at) {
  return fail(word.empty() ? "expected a type, " + found()
                           : "unknown type \"" + std::string(word.substr(0, 40)) + "\"",
              type_hint(word), at);
}

bool Parser::next_is_type() {
  if (peek() == '?') return true;
  const std::string_view word = peek_word();
  if (word.empty()) return false;
  for (std::string_view keyword : kKeywords)
    if (word == keyword) return true;
  int32_t number;
  bool has;
  return element_type(word, number, has);
}

bool Parser::type(const Type*& out) {
  Depth depth(depth_);
  if (!too_deep()) return false;
  out = nullptr;
  Type type;
  auto tensor = [&](std::string_view name) {
    if (!element_type(name, type.elem_type, type.has_elem_type)) return false;
    type.has_shape = true;
    if (!match('[')) return true;
    if (match(']')) {
      type.has_shape = false;
      return true;
    }
    return shape(type.dims);
  };
  if (match('?')) {
    // Alone: no type is there. With an annotation: a type that says nothing else.
    if (peek() != '@' || rest().substr(0, 2) != "@{") return true;
    if (!type_annotation(type)) return false;
    out = storage().intern(std::move(type));
    return true;
  }
  peek();
  const size_t at = position();
  const std::string_view name = word();
  if (name == "seq" || name == "optional") {
    type.kind = name == "seq" ? Type::Kind::kSequence : Type::Kind::kOptional;
    if (!expect('(', "behind the type's name") || !this->type(type.element) ||
        !expect(')', "after the element type"))
      return false;
  } else if (name == "map") {
    type.kind = Type::Kind::kMap;
    if (!expect('(', "behind \"map\"")) return false;
    peek();
    const size_t key_at = position();
    if (std::string_view key = word(); !element_type(key, type.key_type, type.has_key_type))
      return fail("expected the type of a map's keys", type_hint(key), key_at);
    if (!expect(',', "after the key type") || !this->type(type.element) ||
        !expect(')', "after the value type"))
      return false;
  } else if (name == "sparse_tensor") {
    type.kind = Type::Kind::kSparseTensor;
    if (!expect('(', "behind \"sparse_tensor\"")) return false;
    peek();
    const size_t element_at = position();
    if (std::string_view element = word(); !tensor(element))
      return fail("expected the element type of a sparse tensor", type_hint(element), element_at);
    if (!expect(')', "after the type")) return false;
  } else if (name == "opaque") {
    type.kind = Type::Kind::kOpaque;
    if (!opaque(type)) return false;
  } else {
    type.kind = Type::Kind::kTensor;
    if (!tensor(name)) return fail_type(name, at);
  }
  if (!type_annotation(type)) return false;
  const size_t dims = type.dims.capacity();
  out = storage().intern(std::move(type));
  return !types_.insert(out).second || charge(sizeof(Type) + dims * sizeof(Dim) + 160);
}

bool Parser::shape(std::vector<Dim>& out) {
  do {
    if (!charge(2 * sizeof(Dim)) || !dim(out.emplace_back())) return false;
  } while (match(','));
  return expect(']', "after the dimensions");
}

bool Parser::dim(Dim& out) {
  static constexpr std::string_view kKeys[] = {"denotation", "unknown"};
  if (match('?')) {
  } else if (next_is_name()) {
    Text param;
    if (!name(param, "a dimension")) return false;
    out.kind = Dim::Kind::kParam;
    out.param = intern(param);
  } else {
    if (!number(out.value, "a dimension (a number, a name or '?')")) return false;
    out.kind = Dim::kind_of(out.value);
  }
  return annotation(kKeys, [&](size_t key) {
    return key == 0 ? text_value(out.denotation) : hex_value(out.unknown);
  });
}

/// `opaque()`, `opaque(name)`, `opaque(domain, name)`; `?` for a name that is not there. Unquoted
/// names may have dots.
bool Parser::opaque(Type& out) {
  if (!expect('(', "behind \"opaque\"")) return false;
  if (match(')')) return true;
  auto part = [&](Text& part_out) {
    if (match('?')) return true;
    Text piece;
    if (!name(piece, "the name of an opaque type")) return false;
    std::string whole(piece);
    while (match('.')) {
      if (!name(piece, "a name behind the '.'")) return false;
      whole += '.';
      whole += piece;
    }
    part_out = storage().copy(whole);
    return true;
  };
  Text first;
  if (!part(first)) return false;
  if (match(',')) {
    out.opaque_domain = first;
    if (peek() != ')' && !part(out.opaque_name)) return false;
  } else {
    out.opaque_name = first;
  }
  return expect(')', "after the name");
}

bool Parser::type_annotation(Type& out) {
  static constexpr std::string_view kKeys[] = {"denotation", "elem_type",     "key_type",
                                               "unknown",    "unknown_inner", "unknown_shape"};
  return annotation(kKeys, [&](size_t key) {
    switch (key) {
      case 0:
        return text_value(out.denotation);
      case 1:
        out.has_elem_type = true;
        return int32_value(out.elem_type);
      case 2:
        out.has_key_type = true;
        return int32_value(out.key_type);
      case 3:
        return hex_value(out.unknown);
      case 4:
        return hex_value(out.unknown_inner);
      default:
        return hex_value(out.unknown_shape);
    }
  });
}

}  // namespace tombolo::text
