// The sink that makes JSON of the fields that Encoder names.

#include <charconv>
#include <cmath>

#include "base/base64.h"
#include "base/output_file.h"
#include "onnx/encoder.h"
#include "onnx/json.h"
#include "onnx/schema.h"
#include "onnx/wire_writer.h"

namespace tombolo {

namespace {

using onnx::FieldKind;
using onnx::FieldSchema;
using onnx::MessageId;
using onnx::MessageSchema;
using onnx::Repeat;
using onnx::WireReader;
using onnx::WireType;

/// Wire bytes nested deeper than models are left as they are.
constexpr int kMaxWireDepth = 400;

/// Length of the UTF-8 sequence that `text` starts with, 0 when there is none (RFC 3629: shortest
/// form, no surrogates, at most U+10FFFF).
size_t utf8_length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto tail = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return i < text.size() && at(i) >= low && at(i) <= high;
  };
  const uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const uint8_t low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;
    return tail(1, low, high) && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const uint8_t low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
    return tail(1, low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

/// A NaN that "NaN" does not bring back.
bool odd_nan(float value) {
  return std::isnan(value) && std::bit_cast<uint32_t>(value) != 0x7FC00000u;
}
bool odd_nan(double value) {
  return std::isnan(value) && std::bit_cast<uint64_t>(value) != 0x7FF8000000000000ull;
}
template <typename Float>
bool any_odd_nan(std::string_view bytes) {
  for (size_t i = 0; i + sizeof(Float) <= bytes.size(); i += sizeof(Float)) {
    Float value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    if (odd_nan(value)) return true;
  }
  return false;
}

bool fits(const FieldSchema& field, WireType wire) {
  const bool many = field.repeat != Repeat::kOne;
  switch (field.kind) {
    case FieldKind::kFloat:
      return wire == WireType::kFixed32 || (many && wire == WireType::kBytes);
    case FieldKind::kDouble:
      return wire == WireType::kFixed64 || (many && wire == WireType::kBytes);
    case FieldKind::kString:
    case FieldKind::kBytes:
    case FieldKind::kMessage:
      return wire == WireType::kBytes;
    default:
      return wire == WireType::kVarint || (many && wire == WireType::kBytes);
  }
}

/// Whether `bytes` parse as that message all the way down.
bool well_formed(std::string_view bytes, const MessageSchema& schema, int depth) {
  if (depth > kMaxWireDepth) return false;
  WireReader reader(bytes);
  while (reader.next()) {
    const FieldSchema* field = onnx::find_field(schema, reader.field);
    if (field != nullptr && field->kind == FieldKind::kMessage && reader.type == WireType::kBytes &&
        !well_formed(reader.bytes, onnx::schema_of(field->message), depth + 1))
      return false;
  }
  return reader.fault == nullptr;
}

template <typename Output>
class JsonSink {
 public:
  JsonSink(Output& output, const Storage& storage) : output_(output), storage_(storage) {
    open(MessageId::kModel);
  }

  void number(uint32_t number, uint64_t value) {
    const FieldSchema* field = find(number);
    if (field == nullptr ||
        (field->kind == FieldKind::kEnum && value >= field->enum_names.size()) || !begin(*field)) {
      char buffer[20];
      char* end = onnx::put_varint(
          onnx::put_varint(buffer, onnx::tag_of(number, WireType::kVarint)), value);
      top().unknown.append(buffer, end);
      return;
    }
    scalar(*field, value);
  }
  void fixed32(uint32_t number, float value) { floats(number, std::span(&value, 1)); }
  void floats(uint32_t number, std::span<const float> values) {
    if (values.empty()) return;
    const FieldSchema* field = find(number);
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    if (field == nullptr || any_odd_nan<float>(bytes) || !begin(*field)) {
      for (float value : values) {
        char buffer[20];
        char* end = onnx::put_varint(buffer, onnx::tag_of(number, WireType::kFixed32));
        std::memcpy(end, &value, 4);
        top().unknown.append(buffer, end + 4);
      }
      return;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (i != 0) begin(*field);
      real(values[i]);
    }
  }
  void bytes(uint32_t number, std::string_view bytes) {
    const FieldSchema* field = find(number);
    if (field != nullptr && field->repeat == Repeat::kPacked) {
      if ((field->kind == FieldKind::kFloat && any_odd_nan<float>(bytes)) ||
          (field->kind == FieldKind::kDouble && any_odd_nan<double>(bytes)))
        return this->bytes(9, bytes);  // the same values, as raw_data
      return packed(*field, bytes);
    }
    if (field == nullptr || !begin(*field)) {
      char buffer[20];
      char* end = onnx::put_varint(onnx::put_varint(buffer, onnx::tag_of(number, WireType::kBytes)),
                                   bytes.size());
      top().unknown.append(buffer, end);
      top().unknown.append(bytes);
      return;
    }
    if (field->kind == FieldKind::kString) return string(bytes);
    base64(bytes);
  }
  template <typename Content>
  void message(uint32_t number, Content&& content) {
    const FieldSchema& field = *find(number);  // Encoder names only fields that there are
    begin(field);
    open(field.message);
    content();
    close();
  }
  /// Whole fields as wire bytes: what the table knows becomes JSON, the rest goes to "@unknown".
  void raw(std::string_view fields) {
    WireReader reader(fields);
    while (reader.next()) {
      const FieldSchema* field = find(reader.field);
      if (field == nullptr || !fits(*field, reader.type) || taken(*field) ||
          !raw_field(*field, reader))
        top().unknown.append(reader.slice());
    }
  }

  Status finish() {
    close();
    put("\n");
    flush();
    return std::move(status_);
  }

 private:
  struct Level {
    const MessageSchema* schema;
    uint32_t seen = 0;  ///< bits of field numbers
    uint32_t list = 0;  ///< the repeated field whose array is open
    bool any = false;
    std::string unknown{};
  };
  Level& top() { return levels_.back(); }
  const FieldSchema* find(uint32_t number) { return onnx::find_field(*top().schema, number); }
  bool taken(const FieldSchema& field) {
    return (top().seen >> field.number & 1) != 0 && top().list != field.number;
  }

  bool raw_field(const FieldSchema& field, const WireReader& reader) {
    switch (field.kind) {
      case FieldKind::kMessage:
        if (!well_formed(reader.bytes, onnx::schema_of(field.message), 0)) return false;
        message(field.number, [&] { raw(reader.bytes); });
        return true;
      case FieldKind::kString:
      case FieldKind::kBytes:
        bytes(field.number, reader.bytes);
        return true;
      case FieldKind::kFloat:
      case FieldKind::kDouble:
        // Rare (lists beside the attribute's own): exactness is left to the wire bytes.
        return false;
      default:
        if (reader.type == WireType::kBytes) return false;
        number(field.number, reader.number);
        return true;
    }
  }

  void packed(const FieldSchema& field, std::string_view bytes) {
    bool fine = begin(field, false);
    const auto each = [&](auto&& read) {
      for (bool first = true; fine && !bytes.empty(); first = false) {
        if (!first) put(",");
        read();
      }
    };
    const auto real_of = [&](auto value) {
      std::memcpy(&value, bytes.data(), sizeof value);
      bytes.remove_prefix(sizeof value);
      real(value);
    };
    if (field.kind == FieldKind::kFloat) {
      each([&] { real_of(float()); });
    } else if (field.kind == FieldKind::kDouble) {
      each([&] { real_of(double()); });
    } else {
      each([&] {
        uint64_t value = 0;
        size_t size = 0;
        for (unsigned shift = 0; size < bytes.size() && shift < 70; shift += 7) {
          const auto byte = static_cast<uint8_t>(bytes[size++]);
          value |= static_cast<uint64_t>(byte & 0x7F) << shift;
          if (byte < 0x80) break;
        }
        bytes.remove_prefix(size);
        scalar(field, value);
      });
    }
  }

  // ---- structure

  /// Everything up to the value: separators, key, opening bracket. False when the field has been
  /// written before, so that JSON cannot have it again.
  bool begin(const FieldSchema& field, bool element = true) {
    Level& level = top();
    if (field.repeat != Repeat::kOne && level.list == field.number) {
      if (element) put(",");
      return true;
    }
    if (taken(field)) return false;
    end_list();
    key();
    put("\"");
    bool upper = false;
    for (const char c : field.name) {
      if (c == '_') {
        upper = true;
        continue;
      }
      const char put_c = upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      put(std::string_view(&put_c, 1));
      upper = false;
    }
    put("\": ");
    level.seen |= 1u << field.number;
    if (field.repeat != Repeat::kOne) {
      level.list = field.number;
      put("[");
    }
    return true;
  }
  void key() {
    put(top().any ? ",\n" : "\n");
    top().any = true;
    for (size_t i = 0; i < levels_.size(); ++i) put("  ");
  }
  void end_list() {
    if (top().list != 0) put("]");
    top().list = 0;
  }
  void open(MessageId message) {
    put("{");
    levels_.push_back({&onnx::schema_of(message)});
  }
  void close() {
    end_list();
    if (!top().unknown.empty()) {
      key();
      put("\"@unknown\": ");
      base64(top().unknown);
    }
    const bool any = top().any;
    levels_.pop_back();
    if (any) {
      put("\n");
      for (size_t i = 0; i < levels_.size(); ++i) put("  ");
    }
    put("}");
  }

  // ---- values

  void scalar(const FieldSchema& field, uint64_t value) {
    char buffer[24];
    char* end = buffer;
    switch (field.kind) {
      case FieldKind::kEnum:
        put("\"");
        put(field.enum_names[value]);
        put("\"");
        return;
      case FieldKind::kInt32:
        end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<int32_t>(value)).ptr;
        put({buffer, static_cast<size_t>(end - buffer)});
        return;
      case FieldKind::kUInt64:
        end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
        break;
      default:
        end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<int64_t>(value)).ptr;
        break;
    }
    put("\"");
    put({buffer, static_cast<size_t>(end - buffer)});
    put("\"");
  }
  template <typename Float>
  void real(Float value) {
    if (std::isnan(value)) return put("\"NaN\"");
    if (std::isinf(value)) return put(value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    char buffer[40];
    char* end = std::to_chars(buffer, buffer + 32, value).ptr;
    put({buffer, static_cast<size_t>(end - buffer)});
    if (value == 0) put(".0");  // "-0" alone is an integer to many readers
  }
  void string(std::string_view text) {
    put("\"");
    size_t plain = 0;
    for (size_t i = 0; i < text.size();) {
      const auto byte = static_cast<uint8_t>(text[i]);
      size_t length = 1;
      const bool special = byte < 0x20 || byte == '"' || byte == '\\';
      if (byte >= 0x80) length = utf8_length(text.substr(i));
      if (!special && length != 0) {
        i += length;
        continue;
      }
      put(text.substr(plain, i - plain));
      escape(byte);
      plain = ++i;
    }
    put(text.substr(plain));
    put("\"");
  }
  void escape(uint8_t byte) {
    if (byte == '"') return put("\\\"");
    if (byte == '\\') return put("\\\\");
    if (byte == '\n') return put("\\n");
    constexpr std::string_view kHex = "0123456789abcdef";
    const char hex[2] = {kHex[byte >> 4], kHex[byte & 15]};
    put(byte < 0x80 ? "\\u00" : "\\udc");
    put({hex, 2});
  }
  void base64(std::string_view bytes) {
    constexpr size_t kBlock = 3 << 20;
    put("\"");
    for (size_t i = 0; i < bytes.size(); i += kBlock) {
      const std::string_view block = bytes.substr(i, kBlock);
      put(base64_encode(block));
      if (block.size() == kBlock) storage_.release(block);
    }
    put("\"");
  }

  void put(std::string_view text) {
    if (used_ + text.size() > sizeof buffer_) flush();
    if (text.size() > sizeof buffer_) {
      if (status_.ok()) status_ = output_.write(text);
      return;
    }
    std::memcpy(buffer_ + used_, text.data(), text.size());
    used_ += text.size();
  }
  void flush() {
    if (status_.ok() && used_ != 0) status_ = output_.write(std::string_view(buffer_, used_));
    used_ = 0;
  }

  Output& output_;
  const Storage& storage_;
  std::vector<Level> levels_;
  Status status_ = ok();
  size_t used_ = 0;
  char buffer_[1 << 14];
};

template <typename Output>
Status write_to(Output& output, const Model& model, const onnx::Placements* placements) {
  auto sink = std::make_unique<JsonSink<Output>>(output, model.storage());
  onnx::Encoder<JsonSink<Output>>(*sink, placements).model(model);
  return sink->finish();
}

}  // namespace

Result<std::string> write_json(const Model& model) {
  std::string text;
  onnx::StringOutput output{text};
  CHECK_OK(write_to(output, model, nullptr));
  return text;
}

Status save_json(const Model& model, const std::string& path) {
  onnx::Placements placements;
  CHECK_OK(onnx::embed_all(model, placements));
  TRY(OutputFile file, OutputFile::create(path));
  CHECK_OK(write_to(file, model, &placements));
  return file.commit();
}

}  // namespace tombolo
