// The machine that reads a pickle: a stack, a memo, and a node for each value. It never recurses
// and never calls. Opcodes: pickletools of CPython.

#include "formats/common/pickle.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "base/utf8.h"
#include "formats/common/byte_reader.h"
#include "formats/common/numpy_pickle.h"

namespace tombolo {

struct Pickle::Arena {
  std::deque<PickleValue> nodes;
  std::deque<std::string> texts;
  std::shared_ptr<const void> owner;
};

namespace {

using Kind = PickleValue::Kind;

Error bad(size_t at, const std::string& what) {
  return parse_error("damaged pickle at byte " + std::to_string(at) + ": " + what);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Undoes Python's backslash escapes: those of repr() with `quoted`, else only \uXXXX (protocol 0's
/// raw-unicode-escape, whose other bytes are Latin-1).
std::string unescape(std::string_view text, bool quoted) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte != '\\' || i + 1 == text.size()) {
      if (quoted) {
        out += text[i];
      } else {
        append_utf8(out, byte);
      }
      continue;
    }
    const char kind = text[++i];
    const size_t digits = kind == 'U' ? 8 : kind == 'u' ? 4 : kind == 'x' && quoted ? 2 : 0;
    if (digits != 0) {
      uint32_t code = 0;
      size_t taken = 0;
      while (taken < digits && i + 1 < text.size() && hex_digit(text[i + 1]) >= 0) {
        code = code * 16 + static_cast<uint32_t>(hex_digit(text[++i]));
        ++taken;
      }
      if (kind == 'x') {
        out += static_cast<char>(code);
      } else {
        append_utf8(out, code);
      }
      continue;
    }
    if (!quoted) {
      out += '\\';
      append_utf8(out, static_cast<unsigned char>(kind));
      continue;
    }
    switch (kind) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '\\':
      case '\'':
      case '"':
        out += kind;
        break;
      default:
        out += '\\';
        out += kind;
    }
  }
  return out;
}

/// UTF-8 that holds only code points below 256, as the bytes that they stand for.
std::optional<std::string> latin1_bytes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += text[i];
    } else if ((byte & 0xFC) == 0xC0 && i + 1 < text.size()) {
      out += static_cast<char>((byte & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F));
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                const PickleLimits& limits)
      : bytes_(bytes), in_(bytes), limits_(limits), arena_(std::make_shared<Pickle::Arena>()) {
    arena_->owner = std::move(owner);
  }

  Result<Pickle> run() {
    for (;;) {
      at_ = in_.position();
      if (in_.left() == 0) return bad(at_, "it ends without STOP; the file may be truncated");
      const auto opcode = static_cast<unsigned char>(in_.u8());
      if (opcode == '.') break;
      CHECK_OK(step(opcode));
      if (!in_.ok()) return bad(at_, "it ends inside a value; the file may be truncated");
      if (arena_->nodes.size() > limits_.nodes)
        return resource_error("the pickle holds more than " + std::to_string(limits_.nodes) +
                              " values");
    }
    if (stack_.empty()) return bad(at_, "STOP with an empty stack");
    Pickle pickle;
    pickle.root_ = stack_.back();
    pickle.size_ = in_.position();
    pickle.protocol_ = protocol_;
    pickle.arena_ = std::move(arena_);
    return pickle;
  }

 private:
  Status step(unsigned char opcode);
  Status step_container(unsigned char opcode);
  Status step_text(unsigned char opcode);
  Status step_object(unsigned char opcode);
  Status call(PickleValue* callable, PickleValue* arguments);
  Status build(PickleValue* object, PickleValue* state);

  PickleValue* make(Kind kind) {
    PickleValue& value = arena_->nodes.emplace_back();
    value.kind = kind;
    return &value;
  }
  void push(PickleValue* value) { stack_.push_back(value); }
  Status push_shared(PickleValue*& slot, Kind kind, int64_t integer) {
    if (slot == nullptr) {
      slot = make(kind);
      slot->integer = integer;
    }
    push(slot);
    return ok();
  }
  Status push_int(int64_t number) {
    PickleValue* value = make(Kind::kInt);
    value->integer = number;
    push(value);
    return ok();
  }
  Status push_float(double number) {
    PickleValue* value = make(Kind::kFloat);
    value->real = number;
    push(value);
    return ok();
  }
  Status push_view(Kind kind, std::string_view text) {
    PickleValue* value = make(kind);
    value->text = text;
    push(value);
    return ok();
  }
  std::string_view keep(std::string text) { return arena_->texts.emplace_back(std::move(text)); }
  Status push_long(std::string_view little_endian) {
    if (little_endian.size() > 8) return push_view(Kind::kLong, little_endian);
    uint64_t number = 0;
    for (size_t i = 0; i < little_endian.size(); ++i)
      number |= static_cast<uint64_t>(static_cast<unsigned char>(little_endian[i])) << (8 * i);
    const size_t bits = 8 * little_endian.size();
    if (bits != 0 && bits < 64 && (number >> (bits - 1)) & 1) number |= ~uint64_t{0} << bits;
    return push_int(static_cast<int64_t>(number));
  }
  /// A line of the text protocols, without its end.
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + in_.position(),
                                in_.left());
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      in_.fail();
      return {};
    }
    in_.skip(end + 1);
    return rest.substr(0, end);
  }
  Result<int64_t> line_number() {
    std::string_view text = line();
    if (text.ends_with('L')) text.remove_suffix(1);
    int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size())
      return bad(at_, "a number that cannot be read");
    return number;
  }
  Status need(size_t count) {
    const size_t base = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < base + count) return bad(at_, "an opcode finds too few values");
    return ok();
  }
  PickleValue* pop() {
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  /// The values above the last mark, taken from the stack.
  Result<std::vector<PickleValue*>> pop_mark() {
    if (marks_.empty()) return bad(at_, "an opcode finds no mark");
    const size_t base = marks_.back();
    marks_.pop_back();
    std::vector<PickleValue*> values(stack_.begin() + static_cast<std::ptrdiff_t>(base),
                                     stack_.end());
    stack_.resize(base);
    return values;
  }
  Status put(uint64_t index) {
    CHECK_OK(need(1));
    memo_[index] = stack_.back();
    return ok();
  }
  Status get(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) return bad(at_, "a reference to a value that was not stored");
    push(found->second);
    return ok();
  }
  Status append(PickleValue* target, std::span<PickleValue* const> values) {
    if (!target->is(Kind::kList) && !target->is(Kind::kObject))
      return bad(at_, "values are appended to what is no list");
    // Items of an object stand apart from the arguments of its call.
    auto& list = target->is(Kind::kObject) ? target->entries : target->items;
    if (target->is(Kind::kObject)) {
      for (PickleValue* value : values) {
        list.push_back(none());
        list.push_back(value);
      }
    } else {
      list.insert(list.end(), values.begin(), values.end());
    }
    return ok();
  }
  Status set_items(PickleValue* target, std::span<PickleValue* const> values) {
    if (!target->is(Kind::kDict) && !target->is(Kind::kObject))
      return bad(at_, "items are set on what is no dict");
    if (values.size() % 2 != 0) return bad(at_, "a key without a value");
    target->entries.insert(target->entries.end(), values.begin(), values.end());
    return ok();
  }
  PickleValue* none() {
    if (none_ == nullptr) none_ = make(Kind::kNone);
    return none_;
  }
  Status global(std::string_view module, std::string_view name) {
    PickleValue* value = make(Kind::kGlobal);
    value->module = module == "__builtin__" ? std::string_view("builtins") : module;
    value->text = name;
    push(value);
    return ok();
  }

  std::span<const std::byte> bytes_;
  ByteReader in_;
  PickleLimits limits_;
  std::shared_ptr<Pickle::Arena> arena_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleValue*> memo_;
  uint64_t next_memo_ = 0;
  PickleValue *none_ = nullptr, *true_ = nullptr, *false_ = nullptr;
  size_t at_ = 0;
  int protocol_ = 0;
};

Status PickleMachine::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      protocol_ = static_cast<int>(in_.u8());
      if (protocol_ > 5) return unsupported("pickle protocol " + std::to_string(protocol_));
      return ok();
    case 0x95:  // FRAME
      if (const uint64_t size = in_.u64(); size > in_.left())
        return bad(at_, "a frame reaches beyond the end; the file may be truncated");
      return ok();
    case 'N':
      return push_shared(none_, Kind::kNone, 0);
    case 0x88:
      return push_shared(true_, Kind::kBool, 1);
    case 0x89:
      return push_shared(false_, Kind::kBool, 0);
    case 'K':
      return push_int(in_.u8());
    case 'M':
      return push_int(in_.u16());
    case 'J':
      return push_int(static_cast<int32_t>(in_.u32()));
    case 0x8a: {  // LONG1
      const size_t size = in_.u8();
      return push_long(in_.text(size));
    }
    case 0x8b: {  // LONG4
      const size_t size = in_.u32();
      return push_long(in_.text(size));
    }
    case 'G': {  // BINFLOAT, big-endian
      uint64_t bits = 0;
      for (int i = 0; i < 8; ++i) bits = bits << 8 | in_.u8();
      return push_float(std::bit_cast<double>(bits));
    }
    case 'I': {
      const size_t before = in_.position();
      const std::string_view text = line();
      if (text == "00") return push_shared(false_, Kind::kBool, 0);
      if (text == "01") return push_shared(true_, Kind::kBool, 1);
      in_ = ByteReader(bytes_);
      in_.skip(before);
      TRY(int64_t number, line_number());
      return push_int(number);
    }
    case 'L': {
      TRY(int64_t number, line_number());
      return push_int(number);
    }
    case 'F': {
      const std::string text(line());
      char* end = nullptr;
      const double number = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != '\0') return bad(at_, "a number that cannot be read");
      return push_float(number);
    }
    case '0':
      // POP takes a mark when nothing lies above it.
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
        return ok();
      }
      CHECK_OK(need(1));
      stack_.pop_back();
      return ok();
    case '1': {
      TRY(auto dropped, pop_mark());
      return ok();
    }
    case '2':
      CHECK_OK(need(1));
      push(stack_.back());
      return ok();
    case '(':
      marks_.push_back(stack_.size());
      if (marks_.size() > limits_.nodes) return bad(at_, "too many marks");
      return ok();
    case 'q':
      return put(in_.u8());
    case 'r':
      return put(in_.u32());
    case 0x94:
      return put(next_memo_++);
    case 'p': {
      TRY(int64_t index, line_number());
      return put(static_cast<uint64_t>(index));
    }
    case 'h':
      return get(in_.u8());
    case 'j':
      return get(in_.u32());
    case 'g': {
      TRY(int64_t index, line_number());
      return get(static_cast<uint64_t>(index));
    }
    case 0x82:
    case 0x83:
    case 0x84:
      return unsupported("the pickle uses the extension registry of the program that wrote it");
    case 0x97:
      return unsupported("the pickle keeps buffers outside of itself (out-of-band data)");
    case 0x98:
      return ok();  // READONLY_BUFFER
    default:
      return step_container(opcode);
  }
}

Status PickleMachine::step_container(unsigned char opcode) {
  auto tuple = [&](size_t count) -> Status {
    CHECK_OK(need(count));
    PickleValue* value = make(Kind::kTuple);
    value->items.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    push(value);
    return ok();
  };
  switch (opcode) {
    case ']':
      push(make(Kind::kList));
      return ok();
    case '}':
      push(make(Kind::kDict));
      return ok();
    case ')':
      push(make(Kind::kTuple));
      return ok();
    case 0x8f:
      push(make(Kind::kSet));
      return ok();
    case 0x85:
      return tuple(1);
    case 0x86:
      return tuple(2);
    case 0x87:
      return tuple(3);
    case 'l':
    case 't':
    case 0x91: {  // LIST, TUPLE, FROZENSET
      TRY(auto values, pop_mark());
      PickleValue* value = make(opcode == 'l'   ? Kind::kList
                                : opcode == 't' ? Kind::kTuple
                                                : Kind::kSet);
      value->items = std::move(values);
      push(value);
      return ok();
    }
    case 'd': {
      TRY(auto values, pop_mark());
      PickleValue* value = make(Kind::kDict);
      push(value);
      return set_items(value, values);
    }
    case 'a': {
      CHECK_OK(need(2));
      PickleValue* value = pop();
      return append(stack_.back(), {&value, 1});
    }
    case 'e': {
      TRY(auto values, pop_mark());
      CHECK_OK(need(1));
      return append(stack_.back(), values);
    }
    case 's': {
      CHECK_OK(need(3));
      PickleValue* pair[2];
      pair[1] = pop();
      pair[0] = pop();
      return set_items(stack_.back(), pair);
    }
    case 'u': {
      TRY(auto values, pop_mark());
      CHECK_OK(need(1));
      return set_items(stack_.back(), values);
    }
    case 0x90: {  // ADDITEMS
      TRY(auto values, pop_mark());
      CHECK_OK(need(1));
      if (!stack_.back()->is(Kind::kSet) && !stack_.back()->is(Kind::kObject))
        return bad(at_, "values are added to what is no set");
      auto& items = stack_.back()->items;
      items.insert(items.end(), values.begin(), values.end());
      return ok();
    }
    default:
      return step_text(opcode);
  }
}

Status PickleMachine::step_text(unsigned char opcode) {
  size_t size = 0;
  switch (opcode) {
    case 0x8c:
      size = in_.u8();
      return push_view(Kind::kString, in_.text(size));
    case 'X':
      size = in_.u32();
      return push_view(Kind::kString, in_.text(size));
    case 0x8d:
      size = in_.u64();
      return push_view(Kind::kString, in_.text(size));
    case 'U':
      size = in_.u8();
      return push_view(Kind::kString, in_.text(size));
    case 'T':
      size = in_.u32();
      return push_view(Kind::kString, in_.text(size));
    case 'C':
      size = in_.u8();
      return push_view(Kind::kBytes, in_.text(size));
    case 'B':
      size = in_.u32();
      return push_view(Kind::kBytes, in_.text(size));
    case 0x8e:
      size = in_.u64();
      return push_view(Kind::kBytes, in_.text(size));
    case 0x96:
      size = in_.u64();
      return push_view(Kind::kBytes, in_.text(size));
    case 'V':
      return push_view(Kind::kString, keep(unescape(line(), false)));
    case 'S': {
      std::string_view text = line();
      while (text.ends_with(' ') || text.ends_with('\r')) text.remove_suffix(1);
      if (text.size() < 2 || text.front() != text.back() ||
          (text.front() != '\'' && text.front() != '"'))
        return bad(at_, "a string without quotes");
      return push_view(Kind::kString, keep(unescape(text.substr(1, text.size() - 2), true)));
    }
    default:
      return step_object(opcode);
  }
}

Status PickleMachine::step_object(unsigned char opcode) {
  switch (opcode) {
    case 'c': {
      const std::string_view module = line(), name = line();
      return global(module, name);
    }
    case 0x93: {  // STACK_GLOBAL
      CHECK_OK(need(2));
      const PickleValue *name = pop(), *module = pop();
      if (!name->is_text() || !module->is_text()) return bad(at_, "a global without a name");
      return global(module->text, name->text);
    }
    case 'R': {
      CHECK_OK(need(2));
      PickleValue *arguments = pop(), *callable = pop();
      if (!arguments->is(Kind::kTuple)) {
        // TorchScript writes members of enumerations as their class and their value.
        if (!callable->is(Kind::kGlobal) || !callable->module.starts_with("__torch__"))
          return bad(at_, "arguments that are no tuple");
        PickleValue* member = make(Kind::kObject);
        member->is_new = true;
        member->callable = callable;
        member->items = {arguments};
        push(member);
        return ok();
      }
      return call(callable, arguments);
    }
    case 0x81:
    case 0x92: {  // NEWOBJ, NEWOBJ_EX
      CHECK_OK(need(opcode == 0x81 ? 2 : 3));
      const PickleValue* keywords = opcode == 0x92 ? pop() : nullptr;
      PickleValue *arguments = pop(), *type = pop();
      if (!arguments->is(Kind::kTuple) || !type->is(Kind::kGlobal) ||
          (keywords && !keywords->is(Kind::kDict)))
        return bad(at_, "an object of no class");
      PickleValue* object = make(Kind::kObject);
      object->is_new = true;
      object->callable = type;
      object->items = arguments->items;
      if (keywords) object->entries = keywords->entries;
      push(object);
      return ok();
    }
    case 'i':
    case 'o': {  // INST, OBJ: a class is called
      PickleValue* arguments = make(Kind::kTuple);
      PickleValue* type = nullptr;
      if (opcode == 'i') {
        const std::string_view module = line(), name = line();
        CHECK_OK(global(module, name));
        type = pop();
      }
      TRY(arguments->items, pop_mark());
      if (opcode == 'o') {
        if (arguments->items.empty()) return bad(at_, "an object of no class");
        type = arguments->items.front();
        arguments->items.erase(arguments->items.begin());
      }
      return call(type, arguments);
    }
    case 'b': {
      CHECK_OK(need(2));
      PickleValue* state = pop();
      return build(stack_.back(), state);
    }
    case 'P':
    case 'Q': {
      const PickleValue* id = nullptr;
      if (opcode == 'P') {
        CHECK_OK(push_view(Kind::kString, line()));
      } else {
        CHECK_OK(need(1));
      }
      id = pop();
      // PyTorch's old files refer to a class so, to bring its source text along: ("module", class,
      // file, source).
      if (const PickleValue* kind = id->at(0); kind && kind->is_text() && kind->text == "module" &&
                                               id->items.size() > 1 &&
                                               id->items[1]->is(Kind::kGlobal)) {
        push(id->items[1]);
        return ok();
      }
      PickleValue* reference = make(Kind::kPersistent);
      reference->callable = id;
      push(reference);
      return ok();
    }
    default: {
      constexpr char kHex[] = "0123456789abcdef";
      return bad(at_, std::string("unknown opcode 0x") + kHex[opcode >> 4] + kHex[opcode & 15]);
    }
  }
}

Status PickleMachine::call(PickleValue* callable, PickleValue* arguments) {
  const auto& given = arguments->items;
  if (!callable->is(Kind::kGlobal))
    return unsupported("the pickle calls a value that it computed itself")
        .with_help("Tombolo reads pickles as data and calls nothing; save plain weights instead");
  const std::string_view module = callable->module, name = callable->text;
  // A function that calls another one is as harmless as the other one is.
  const bool indirect = name.starts_with("_rebuild_from_type") && !given.empty();
  const PickleValue* target = indirect ? given[0] : callable;
  if (!is_harmless_call(module, name) || !target->is(Kind::kGlobal) ||
      !is_harmless_call(target->module, target->text))
    return unsupported("the pickle calls " + target->qualified_name() +
                       ", which is not among the harmless constructors")
        .with_help(
            "Tombolo reads pickles as data and runs nothing of them; save the weights alone, with "
            "torch.save(model.state_dict(), ...) or as safetensors");

  const auto is_builtin = [&](std::string_view what) {
    return module == "builtins" && name == what;
  };
  PickleValue* value = nullptr;
  if (is_builtin("list") || is_builtin("tuple") || is_builtin("set") || is_builtin("frozenset") ||
      (module == "collections" && name == "deque") || (module == "torch" && name == "Size")) {
    value = make(is_builtin("set") || is_builtin("frozenset") ? Kind::kSet
                 : is_builtin("tuple") || name == "Size"      ? Kind::kTuple
                                                              : Kind::kList);
    if (!given.empty() && (given[0]->is_sequence() || given[0]->is(Kind::kSet)))
      value->items = given[0]->items;
  } else if (is_builtin("dict") || (module == "collections" && name != "ChainMap")) {
    value = make(Kind::kDict);
    // OrderedDict([[k, v], ...]), Counter({...}), defaultdict(factory, {...})
    for (const PickleValue* given_value : given) {
      if (given_value->is(Kind::kDict)) value->entries = given_value->entries;
      if (!given_value->is_sequence()) continue;
      for (const PickleValue* pair : given_value->items) {
        if (!pair->is_sequence() || pair->items.size() != 2)
          return bad(at_, "a dict from what are no pairs");
        value->entries.insert(value->entries.end(), pair->items.begin(), pair->items.end());
      }
    }
  } else if (module == "_codecs" && name == "encode") {
    // How protocol 2 writes bytes: text of code points below 256.
    value = make(Kind::kBytes);
    std::optional<std::string> bytes;
    if (!given.empty() && given[0]->is_text()) bytes = latin1_bytes(given[0]->text);
    if (!bytes) return bad(at_, "bytes that are no Latin-1 text");
    value->text = keep(*std::move(bytes));
  } else if ((is_builtin("bytes") || is_builtin("bytearray")) &&
             (given.empty() || given[0]->is(Kind::kBytes))) {
    value = make(Kind::kBytes);
    if (!given.empty()) value->text = given[0]->text;
  } else if (is_builtin("bytearray") && given[0]->is_text()) {
    const auto bytes = latin1_bytes(given[0]->text);
    if (!bytes) return bad(at_, "bytes that are no Latin-1 text");
    value = make(Kind::kBytes);
    value->text = keep(*bytes);
  } else if (name == "_reconstructor" || name == "__newobj__") {
    // copyreg's (class, base, state of the base) is an object of the class.
    if (given.empty() || !given[0]->is(Kind::kGlobal)) return bad(at_, "an object of no class");
    value = make(Kind::kObject);
    value->is_new = true;
    value->callable = given[0];
    if (name == "__newobj__") value->items.assign(given.begin() + 1, given.end());
    if (name == "_reconstructor" && given.size() > 2) {
      if (given[2]->is(Kind::kDict)) value->entries = given[2]->entries;
      if (given[2]->is_sequence()) CHECK_OK(append(value, given[2]->items));
    }
  } else {
    value = make(Kind::kObject);
    value->callable = callable;
    value->items = given;
  }
  push(value);
  return ok();
}

Status PickleMachine::build(PickleValue* object, PickleValue* state) {
  object->state = state;
  // joblib writes the bytes of an array right behind the object that describes it.
  if (!object->is_object_of("joblib.numpy_pickle", "NumpyArrayWrapper")) return ok();
  TRY(PickledArray header, joblib_array(*state));
  const PickleValue* alignment = object->attribute("numpy_array_alignment_bytes");
  if (alignment != nullptr && alignment->as_int()) in_.skip(in_.u8());
  if (header.is_object) return unsupported("an array of Python objects inside a joblib file");
  object->text = in_.text(header.bytes);
  return ok();
}

Result<Pickle> Pickle::parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                             const PickleLimits& limits) {
  return PickleMachine(bytes, std::move(owner), limits).run();
}

bool Pickle::probe(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return false;
  ByteReader in(bytes);
  const uint8_t first = in.u8(), second = in.u8();
  if (first == 0x80) return second >= 2 && second <= 5;
  // Protocols 0 and 1: a container, then a marker of what is inside.
  if (first == '(') return second == 'd' || second == 'l' || second == 'i' || second == 'c';
  if (first == '}' || first == ']') return second == 'q' || second == '(';
  return first == 'c' && second == 'c';
}

}  // namespace tombolo
