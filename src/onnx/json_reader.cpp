// JSON -> wire bytes, driven by the table of messages, then read as any model is. One pass, no
// tree: what is held is the text (mapped) and the wire bytes.

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/base64.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "onnx/json.h"
#include "onnx/reader.h"
#include "onnx/schema.h"
#include "onnx/wire.h"

namespace tombolo {

namespace {

using onnx::FieldKind;
using onnx::FieldSchema;
using onnx::MessageId;
using onnx::MessageSchema;
using onnx::Repeat;
using onnx::WireType;

/// A graph takes three levels (graph, node, attribute); the binary reader allows 100 graphs.
constexpr int kMaxJsonDepth = 400;

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  std::string wire;
  Error error;

  bool model() {
    if (!message(onnx::schema_of(MessageId::kModel), 0)) return false;
    space();
    return at_ == text_.size() || fail("expected nothing after the model");
  }

 private:
  bool fail(std::string what) { return fail_at(at_, std::move(what)); }
  bool fail_at(size_t at, std::string what) {
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at && i < text_.size(); ++i)
      if (text_[i] == '\n') {
        ++line;
        start = i + 1;
      }
    error = parse_error("line " + std::to_string(line) + ", column " +
                        std::to_string(at - start + 1) + ": " + what);
    return false;
  }

  // ---- tokens

  void space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  bool accept(char c) {
    space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool expect(char c) { return accept(c) || fail(std::string("expected '") + c + "'"); }
  bool accept_null() {
    space();
    if (text_.substr(at_, 4) != "null") return false;
    at_ += 4;
    return true;
  }

  /// A string token. The result views the text, or scratch_ when there were escapes.
  bool string(std::string_view& out) {
    if (!expect('"')) return false;
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<uint8_t>(text_[at_]) >= 0x20)
      ++at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      out = text_.substr(start, at_++ - start);
      return true;
    }
    scratch_.assign(text_.substr(start, at_ - start));
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        out = scratch_;
        return true;
      }
      if (static_cast<uint8_t>(c) < 0x20) return fail("a control character inside a string");
      ++at_;
      if (c == '\\') {
        if (!escape()) return false;
      } else {
        scratch_ += c;
      }
    }
    return fail_at(start - 1, "this string does not end");
  }
  bool escape() {
    if (at_ == text_.size()) return fail("the text ends inside a string");
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    const char c = text_[at_++];
    if (const size_t index = kFrom.find(c); index != kFrom.npos) {
      scratch_ += kTo[index];
      return true;
    }
    uint32_t code;
    if (c != 'u' || !hex(code)) return fail("an impossible escape in a string");
    if (code >= 0xD800 && code < 0xDC00) {
      uint32_t low;
      if (text_.substr(at_, 2) != "\\u" || (at_ += 2, !hex(low)) || low < 0xDC00 || low > 0xDFFF)
        return fail("half a surrogate pair in a string");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC80 && code <= 0xDCFF) {  // a byte that is not UTF-8: see json.h
      scratch_ += static_cast<char>(code & 0xFF);
      return true;
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
      return fail("half a surrogate pair in a string");
    }
    append_utf8(scratch_, code);
    return true;
  }
  bool hex(uint32_t& code) {
    if (text_.size() - at_ < 4) return false;
    const char* first = text_.data() + at_;
    auto [end, status] = std::from_chars(first, first + 4, code, 16);
    if (status != std::errc() || end != first + 4) return false;
    at_ += 4;
    return true;
  }

  /// The text of a number, bare or (as the mapping allows) in quotes.
  bool number_text(std::string_view& out) {
    space();
    if (at_ < text_.size() && text_[at_] == '"') {
      if (!string(out)) return false;
      return !out.empty() || fail("expected a number");
    }
    const size_t start = at_;
    while (at_ < text_.size() &&
           std::string_view("+-.0123456789eE").find(text_[at_]) != std::string_view::npos)
      ++at_;
    out = text_.substr(start, at_ - start);
    return !out.empty() || fail("expected a number");
  }

  // ---- values

  template <typename Integer>
  bool integer(Integer& out) {
    space();
    const size_t start = at_;
    std::string_view digits;
    if (!number_text(digits)) return false;
    const char* const end = digits.data() + digits.size();
    auto [stop, status] = std::from_chars(digits.data(), end, out);
    if (status == std::errc() && stop == end) return true;
    // 1.0 and 1e3 are integers too, as far as a double says so exactly.
    double value;
    auto [stop2, status2] = std::from_chars(digits.data(), end, value);
    constexpr double kEnd = static_cast<double>(std::numeric_limits<Integer>::max() / 2 + 1) * 2;
    if (status2 != std::errc() || stop2 != end || std::trunc(value) != value || !(value < kEnd) ||
        value < static_cast<double>(std::numeric_limits<Integer>::min()))
      return fail_at(start,
                     "expected an integer of " + std::to_string(sizeof(Integer) * 8) + " bits");
    out = static_cast<Integer>(value);
    return true;
  }
  template <typename Float>
  bool real(Float& out) {
    space();
    const size_t start = at_;
    std::string_view digits;
    if (!number_text(digits)) return false;
    const auto not_a_number = std::numeric_limits<Float>::quiet_NaN();
    const auto infinity = std::numeric_limits<Float>::infinity();
    if (digits == "NaN") return out = not_a_number, true;
    if (digits == "Infinity") return out = infinity, true;
    if (digits == "-Infinity") return out = -infinity, true;
    const char* const end = digits.data() + digits.size();
    auto [stop, status] = std::from_chars(digits.data(), end, out);
    if (stop == end && status == std::errc::result_out_of_range) {
      // Too small rounds to zero, too large is an error.
      double wide = 0;
      const bool small = std::from_chars(digits.data(), end, wide).ec == std::errc()
                             ? std::abs(wide) < 1
                             : digits.find("e-") != digits.npos;
      if (!small) return fail_at(start, "this number is too large");
      out = digits.front() == '-' ? Float(-0.0) : Float(0);
      return true;
    }
    return (status == std::errc() && stop == end && std::isfinite(out)) ||
           fail_at(start, "expected a number");
  }

  void tag(const FieldSchema& field, WireType type) { varint(onnx::tag_of(field.number, type)); }
  void varint(uint64_t value) {
    char buffer[10];
    wire.append(buffer, onnx::put_varint(buffer, value));
  }
  template <typename Fixed>
  void fixed(Fixed value) {
    wire.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  /// Starts a length-delimited field: a byte for the length, widened at the end if need be.
  size_t open(const FieldSchema& field) {
    tag(field, WireType::kBytes);
    wire += '\0';
    return wire.size();
  }
  void close(size_t start) {
    const size_t length = wire.size() - start;
    char buffer[10];
    const size_t size = static_cast<size_t>(onnx::put_varint(buffer, length) - buffer);
    wire[start - 1] = buffer[0];
    if (size > 1) wire.insert(start, buffer + 1, size - 1);
  }

  template <typename Integer>
  bool varint_value(const FieldSchema& field) {
    Integer value{};
    if (!integer(value)) return false;
    if (field.repeat != Repeat::kPacked) tag(field, WireType::kVarint);
    // Negative numbers of any width take ten bytes, as protobuf has it.
    varint(std::is_signed_v<Integer> ? static_cast<uint64_t>(static_cast<int64_t>(value))
                                     : static_cast<uint64_t>(value));
    return true;
  }
  template <typename Float>
  bool fixed_value(const FieldSchema& field) {
    Float value{};
    if (!real(value)) return false;
    if (field.repeat != Repeat::kPacked)
      tag(field, sizeof(Float) == 4 ? WireType::kFixed32 : WireType::kFixed64);
    fixed(value);
    return true;
  }
  bool enumeration(const FieldSchema& field) {
    space();
    const size_t start = at_;
    int32_t number = 0;
    bool named = false;
    if (at_ < text_.size() && text_[at_] == '"') {
      std::string_view name;
      if (!string(name)) return false;
      for (size_t i = 0; i < field.enum_names.size(); ++i)
        if (field.enum_names[i] == name) {
          number = static_cast<int32_t>(i);
          named = true;
        }
      if (!named)
        return fail_at(start, "\"" + std::string(name.substr(0, 100)) + "\" is no value of " +
                                  std::string(field.name));
    } else if (!integer(number)) {
      return false;
    }
    tag(field, WireType::kVarint);
    varint(static_cast<uint64_t>(static_cast<int64_t>(number)));
    return true;
  }
  bool base64(std::string& out) {
    space();
    const size_t start = at_;
    std::string_view text;
    if (!string(text)) return false;
    constexpr size_t kBlock = size_t{1} << 16;
    while (!text.empty()) {  // whole groups of four, so that each block stands alone
      auto bytes = base64_decode(text.substr(0, kBlock));
      if (!bytes || (text.size() > kBlock && bytes->size() != kBlock / 4 * 3))
        return fail_at(start, "this is not base64");
      out += *bytes;
      text.remove_prefix(std::min(kBlock, text.size()));
    }
    return true;
  }

  bool value(const FieldSchema& field, int depth) {
    switch (field.kind) {
      case FieldKind::kInt32:
        return varint_value<int32_t>(field);
      case FieldKind::kInt64:
        return varint_value<int64_t>(field);
      case FieldKind::kUInt64:
        return varint_value<uint64_t>(field);
      case FieldKind::kFloat:
        return fixed_value<float>(field);
      case FieldKind::kDouble:
        return fixed_value<double>(field);
      case FieldKind::kEnum:
        return enumeration(field);
      case FieldKind::kString: {
        std::string_view text;
        if (!string(text)) return false;
        tag(field, WireType::kBytes);
        varint(text.size());
        wire += text;
        return true;
      }
      case FieldKind::kBytes: {
        const size_t start = open(field);
        if (!base64(wire)) return false;
        close(start);
        return true;
      }
      case FieldKind::kMessage: {
        const size_t start = open(field);
        if (!message(onnx::schema_of(field.message), depth + 1)) return false;
        close(start);
        return true;
      }
    }
    return false;
  }

  bool list(const FieldSchema& field, int depth) {
    if (!expect('[')) return false;
    const bool packed = field.repeat == Repeat::kPacked;
    if (accept(']')) return true;
    const size_t start = packed ? open(field) : 0;
    do {
      if (!value(field, depth)) return false;
    } while (accept(','));
    if (packed) close(start);
    return expect(']');
  }

  bool message(const MessageSchema& schema, int depth) {
    if (depth > kMaxJsonDepth)
      return fail("messages nest deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    if (!expect('{')) return false;
    uint32_t seen = 0;
    std::string unknown;
    if (accept('}')) return true;
    do {
      space();
      const size_t start = at_;
      std::string_view name;
      if (!string(name)) return false;
      if (name == "@unknown") {
        if (!expect(':') || !base64(unknown)) return false;
        continue;
      }
      const FieldSchema* field = onnx::find_field(schema, name);
      if (field == nullptr)
        return fail_at(start, std::string(schema.name) + " has no field \"" +
                                  std::string(name.substr(0, 100)) + "\"");
      if ((seen >> field->number & 1) != 0)
        return fail_at(start, "\"" + std::string(name) + "\" stands here twice");
      seen |= 1u << field->number;
      if (!expect(':')) return false;
      if (accept_null()) continue;
      if (!(field->repeat == Repeat::kOne ? value(*field, depth) : list(*field, depth)))
        return false;
    } while (accept(','));
    wire += unknown;
    return expect('}');
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string scratch_;
};

}  // namespace

namespace {
/// `file`, if any, is what the text views: not needed any more once it is wire bytes.
Result<std::unique_ptr<Model>> read_into(std::string_view text, StoragePtr storage,
                                         const MappedFile* file) {
  auto wire = std::make_shared<std::string>();
  {
    JsonReader reader(text);
    reader.wire.reserve(text.size() / 4);
    if (!reader.model()) return std::move(reader.error);
    *wire = std::move(reader.wire);
    if (file != nullptr) file->release_pages(file->bytes());
  }
  storage->keep(wire);
  return read_onnx(*wire, std::move(storage));
}
}  // namespace

Result<std::unique_ptr<Model>> read_json(std::string_view text) {
  return read_into(text, std::make_shared<Storage>(), nullptr);
}

Result<std::unique_ptr<Model>> load_json(const std::string& path) {
  TRY(MappedFile file, MappedFile::open(path));
  auto storage = std::make_shared<Storage>();
  const size_t slash = path.rfind('/');
  storage->set_folder(slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
  return read_into(file.text(), std::move(storage), &file).at(file.name());
}

}  // namespace tombolo
