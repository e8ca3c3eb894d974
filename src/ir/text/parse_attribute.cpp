// Attributes: `name: type = value`. Without a type the value decides it.

#include "ir/text/attribute_names.h"
#include "ir/text/parser_impl.h"

namespace tombolo::text {

namespace {

AttrType item_type(AttrType list) {
  switch (list) {
    case AttrType::kFloats:
      return AttrType::kFloat;
    case AttrType::kInts:
      return AttrType::kInt;
    case AttrType::kStrings:
      return AttrType::kString;
    case AttrType::kTensors:
      return AttrType::kTensor;
    case AttrType::kGraphs:
      return AttrType::kGraph;
    case AttrType::kSparseTensors:
      return AttrType::kSparseTensor;
    case AttrType::kTypes:
      return AttrType::kType;
    default:
      return AttrType::kUndefined;
  }
}

}  // namespace

bool Parser::attribute(Attribute& out, Node* node, GraphLinker* linker) {
  static constexpr std::string_view kKeys[] = {"doc_string", "ref_attr_name", "type", "untyped",
                                               "unknown"};
  bool typed = false, untyped = false;
  int32_t type_number = -1;
  if (match(':')) {
    peek();
    const size_t at = position();
    const std::string_view word = this->word();
    size_t type = 0;
    while (type < std::size(kAttributeTypeNames) && kAttributeTypeNames[type] != word) ++type;
    if (type == std::size(kAttributeTypeNames))
      return fail(word.empty()
                      ? "expected the type of the attribute, " + found()
                      : "unknown attribute type \"" + std::string(word.substr(0, 40)) + "\"",
                  suggest(word, kAttributeTypeNames), at);
    out.type = static_cast<AttrType>(type);
    typed = true;
  }
  const bool annotated = annotation(kKeys, [&](size_t key) {
    switch (key) {
      case 0:
        return text_value(out.ensure_extra().doc);
      case 1:
        return text_value(out.ensure_extra().ref_attr_name);
      case 2:
        return int32_value(type_number);
      case 3:
        untyped = true;
        return true;
      default:
        return hex_value(out.ensure_extra().unknown);
    }
  });
  if (!annotated || !expect('=', "before the value of the attribute")) return false;

  const AttrType expected = out.type;
  if (match('?')) {
    // Nothing is set but the type.
  } else if (peek() == '[') {
    if (!attribute_list(out, node, linker)) return false;
  } else {
    if (item_type(expected) != AttrType::kUndefined && peek() != '@')
      return fail("the attribute is declared as a list: expected '[', " + found());
    if (!attribute_value(out, expected, node, linker)) return false;
  }
  if (type_number >= 0) out.type = static_cast<AttrType>(type_number);
  // A reference without a type says none.
  out.has_type = !untyped && (typed || out.type != AttrType::kUndefined);
  return true;
}

bool Parser::attribute_list(Attribute& out, Node* node, GraphLinker* linker) {
  const AttrType expected = out.type;
  const AttrType item = item_type(expected);
  if (!expect('[', "to begin a list")) return false;
  if (peek() == ']') {
    if (expected == AttrType::kUndefined)
      return fail("an empty list needs a type", "write `name: ints = []`");
    if (item == AttrType::kUndefined) return fail("the attribute is not declared as a list");
    return match(']');
  }
  out.type = AttrType::kUndefined;
  do {
    Attribute value;
    if (!attribute_value(value, item, node, linker) || !append(out, std::move(value))) return false;
  } while (match(','));
  return expect(']', "after the last value");
}

/// Adds one value to a list attribute; the first decides the type, but a float among integers (as
/// upstream's printer writes `[1, 0.5]` without a type) makes them floats.
bool Parser::append(Attribute& list, Attribute&& item) {
  if (item.is_reference()) return fail("a list cannot hold a reference");
  auto add = [&]<typename T>(AttrType type, T value) {
    if (list.type == AttrType::kUndefined) {
      list.type = type;
      list.value = std::vector<T>();
      // A list of a given type can be counted before it is stored: commas up to its end.
      if constexpr (std::is_arithmetic_v<T>) {
        const std::string_view text = rest().substr(0, rest().find(']'));
        size_t commas = 0;
        for (char c : text) commas += c == ',';
        if (!charge(commas * sizeof(T))) return false;
        std::get<std::vector<T>>(list.value).reserve(commas + 1);
      }
    }
    if (list.type != type) return fail("the values of a list must be of one type");
    if constexpr (!std::is_arithmetic_v<T>)
      if (!charge(2 * sizeof(T))) return false;
    std::get<std::vector<T>>(list.value).push_back(std::move(value));
    return true;
  };
  switch (item.type) {
    case AttrType::kInt:
      if (list.type == AttrType::kFloats)
        return add(AttrType::kFloats, static_cast<float>(std::get<int64_t>(item.value)));
      return add(AttrType::kInts, std::get<int64_t>(item.value));
    case AttrType::kFloat:
      if (list.type == AttrType::kInts) {
        const auto ints = std::get<std::vector<int64_t>>(std::move(list.value));
        list.type = AttrType::kFloats;
        list.value = std::vector<float>(ints.begin(), ints.end());
      }
      return add(AttrType::kFloats, std::get<float>(item.value));
    case AttrType::kString:
      return add(AttrType::kStrings, std::get<Text>(item.value));
    case AttrType::kTensor:
      return add(AttrType::kTensors, std::move(*std::get<std::unique_ptr<Constant>>(item.value)));
    case AttrType::kGraph:
      return add(AttrType::kGraphs, std::get<std::unique_ptr<Graph>>(std::move(item.value)));
    case AttrType::kSparseTensor:
      return add(AttrType::kSparseTensors,
                 std::move(*std::get<std::unique_ptr<SparseConstant>>(item.value)));
    default:
      return add(AttrType::kTypes, std::get<const Type*>(item.value));
  }
}

bool Parser::attribute_value(Attribute& out, AttrType expected, Node* node, GraphLinker* linker) {
  const size_t at = (peek(), position());
  if (peek() == '@') {
    match('@');
    Text name;
    if (!this->name(name, "the name of the function's attribute")) return false;
    out.ensure_extra().ref_attr_name = intern(name);
    return true;  // the type is the declared one, or none
  }
  if (next_is_type() && expected != AttrType::kGraph) {
    if (!typed_value(out)) return false;
  } else if (next_is_number() && expected != AttrType::kGraph) {
    return number_value(out, expected);
  } else {
    // A quoted string is a value, or the name of a graph: then its inputs follow.
    bool is_graph = peek() != '"' || expected == AttrType::kGraph;
    if (!is_graph) {
      Text text;
      if (!quoted(text, "a value")) return false;
      is_graph = peek() == '(' || rest().substr(0, 2) == "@{";
      if (!is_graph) {
        out.type = AttrType::kString;
        out.value = intern(text);
        if (!charge(text.size())) return false;
      }
    }
    if (is_graph) {
      rewind(at);
      if (!next_is_name()) return fail("expected the value of the attribute, " + found());
      auto inner = std::make_unique<Graph>(storage_ptr_, node);
      if (!graph(*inner, linker)) return false;
      out.type = AttrType::kGraph;
      out.value = std::move(inner);
    }
  }
  if (expected != AttrType::kUndefined && expected != out.type)
    return fail("the attribute is declared as " + std::string(attribute_type_name(expected)) +
                    ", its value is " + std::string(attribute_type_name(out.type)),
                {}, at);
  return true;
}

bool Parser::number_value(Attribute& out, AttrType expected) {
  Number literal;
  if (!number(literal, "a number")) return false;
  if (expected == AttrType::kFloat || (expected != AttrType::kInt && !literal.is_integer)) {
    float value;
    if (!convert(literal, value)) return false;
    out.type = AttrType::kFloat;
    out.value = value;
    return true;
  }
  if (expected != AttrType::kInt && expected != AttrType::kUndefined)
    return fail("the attribute is declared as " + std::string(attribute_type_name(expected)) +
                    ", its value is a number",
                {}, position() - literal.text.size());
  int64_t value;
  if (!convert(literal, value)) return false;
  out.type = AttrType::kInt;
  out.value = value;
  return true;
}

/// A tensor, a sparse tensor or a type: all begin with a type.
bool Parser::typed_value(Attribute& out) {
  const Type* type;
  if (!this->type(type)) return false;
  Text name;
  const bool named = next_is_name() && !next_is_number();
  if (named && !this->name(name, "the name of the tensor")) return false;
  const bool data = named || peek() == '=' || peek() == '{' || peek() == '[';
  if (!data) {
    out.type = AttrType::kType;
    out.value = type;
    return true;
  }
  if (named) name = keep(name);
  if (type != nullptr && type->kind == Type::Kind::kSparseTensor) {
    auto sparse = std::make_unique<SparseConstant>();
    if (!charge(sizeof(SparseConstant)) || !sparse_constant(*sparse, *type)) return false;
    if (named) sparse->values.name = name;
    out.type = AttrType::kSparseTensor;
    out.value = std::move(sparse);
    return true;
  }
  if (type == nullptr) return fail("a tensor needs a type");
  auto dense = std::make_unique<Constant>();
  if (!charge(sizeof(Constant)) || !constant(*dense, *type)) return false;
  dense->name = name;
  out.type = AttrType::kTensor;
  out.value = std::move(dense);
  return true;
}

}  // namespace tombolo::text
