#include "onnx/tensor_file.h"

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "onnx/decoder.h"
#include "onnx/encoder.h"
#include "onnx/wire_writer.h"

namespace tombolo {

namespace {

using onnx::Decoder;
using onnx::WireReader;
using onnx::WireType;

/// SequenceProto.DataType and OptionalProto.DataType; the fields of the values are two more.
enum class Held : int32_t {
  kUndefined = 0,
  kTensor = 1,
  kSparse = 2,
  kSequence = 3,
  kMap = 4,
  kOptional = 5
};
constexpr uint32_t field_in_optional(Held held) { return static_cast<uint32_t>(held) + 2; }

// ---- reading

class ValueReader {
 public:
  ValueReader(std::string_view file, const StoragePtr& storage)
      : decoder_(file, storage), storage_(storage) {}

  Result<RunValue> tensor(std::string_view bytes) {
    Constant constant;
    if (!decoder_.constant(bytes, constant)) return std::move(decoder_.error);
    TRY(Tensor tensor, constant.value(storage_));
    return RunValue(std::move(tensor));
  }

  Result<RunValue> sparse(std::string_view bytes) {
    SparseConstant constant;
    if (!decoder_.sparse(bytes, constant)) return std::move(decoder_.error);
    SparseValue value;
    TRY(value.values, constant.values.value(storage_));
    TRY(value.indices, constant.indices.value(storage_));
    value.dims.assign(constant.dims.span());
    return RunValue(std::move(value));
  }

  Result<RunValue> sequence(std::string_view bytes, const Type* element, int depth) {
    CHECK_OK(check(depth));
    SequenceValue value;
    if (element != nullptr && element->is_tensor()) value.elem = element->dtype();
    WireReader reader(bytes);
    while (reader.next()) {
      if (reader.type != WireType::kBytes || reader.field < 3 || reader.field > 7) continue;
      // SequenceProto numbers its members: tensor 3, sparse 4, sequence 5, map 6, optional 7.
      auto item = held(static_cast<Held>(reader.field - 2), reader.bytes, element, depth + 1);
      if (!item) return std::move(item).error().at("item " + std::to_string(value.items.size()));
      if (value.elem == DType::kUndefined && item->is_tensor()) value.elem = item->tensor().dtype();
      value.items.push_back(*std::move(item));
    }
    CHECK_OK(whole(reader));
    return RunValue(std::move(value));
  }

  Result<RunValue> map(std::string_view bytes, const Type* type, int depth) {
    CHECK_OK(check(depth));
    std::vector<int64_t> keys;
    std::vector<std::string> string_keys;
    std::string_view values = "";
    int32_t key_type = type != nullptr ? type->key_type : 0;
    bool has = false;
    onnx::Pieces unknown;
    using Took = Decoder::Took;
    const bool fine = decoder_.fields(bytes, unknown, [&](const WireReader& r) {
      if (r.field == 2) return Decoder::number(r, key_type, has);
      if (r.field == 3) return decoder_.integers(r, keys);
      if (r.field == 4 && r.type == WireType::kBytes) {
        string_keys.emplace_back(r.bytes);
        return Took::kYes;
      }
      if (r.field == 5 && r.type == WireType::kBytes) values = r.bytes;
      return Took::kYes;
    });
    if (!fine) return std::move(decoder_.error);
    TRY(RunValue list, sequence(values, type != nullptr ? type->element : nullptr, depth + 1));
    MapValue value;
    value.values = list.sequence().items;
    const auto count = static_cast<int64_t>(value.values.size());
    if (!string_keys.empty() || key_type == static_cast<int32_t>(DType::kString)) {
      if (!keys.empty() || static_cast<int64_t>(string_keys.size()) != count)
        return parse_error("a map has " + std::to_string(string_keys.size()) + " text keys, " +
                           std::to_string(keys.size()) + " number keys and " +
                           std::to_string(count) + " values");
      value.keys = Tensor::of_strings(std::span(&count, 1), std::move(string_keys));
      return RunValue(std::move(value));
    }
    const DType dtype = dtype_from_number(key_type).value_or(DType::kInt64);
    if (!is_integer(dtype) || is_sub_byte(dtype))
      return parse_error("a map cannot have keys of type " + std::string(name_of(dtype)));
    if (static_cast<int64_t>(keys.size()) != count)
      return parse_error("a map has " + std::to_string(keys.size()) + " keys and " +
                         std::to_string(count) + " values");
    TRY(value.keys, Tensor::allocate(dtype, std::span(&count, 1)));
    for (int64_t i = 0; i < count; ++i) value.keys.set_int64(i, keys[static_cast<size_t>(i)]);
    return RunValue(std::move(value));
  }

  Result<RunValue> optional(std::string_view bytes, const Type* element, int depth) {
    CHECK_OK(check(depth));
    Held kind = Held::kUndefined;
    std::string_view content;
    WireReader reader(bytes);
    while (reader.next()) {
      // Fields beyond OptionalProto's, or of other types, belong to a bare tensor or sequence.
      const bool own = reader.is(1, WireType::kBytes) || reader.is(2, WireType::kVarint) ||
                       (reader.type == WireType::kBytes && reader.field >= 3 && reader.field <= 7);
      if (!own) return bare(bytes, element, depth);
      if (reader.field < 3) continue;
      if (kind != Held::kUndefined) return bare(bytes, element, depth);  // a list: no optional
      kind = static_cast<Held>(reader.field - 2);
      content = reader.bytes;
    }
    CHECK_OK(whole(reader));
    if (kind == Held::kUndefined) return RunValue::empty_optional();
    TRY(RunValue value, held(kind, content, element, depth + 1));
    return RunValue::optional_of(std::move(value));
  }

  Result<RunValue> value(std::string_view bytes, const Type* type, int depth) {
    const Type::Kind kind = type != nullptr ? type->kind : Type::Kind::kTensor;
    switch (kind) {
      case Type::Kind::kNone:
      case Type::Kind::kTensor:
        return tensor(bytes);
      case Type::Kind::kSparseTensor:
        return sparse(bytes);
      case Type::Kind::kSequence:
        return sequence(bytes, type->element, depth);
      case Type::Kind::kMap:
        return map(bytes, type, depth);
      case Type::Kind::kOptional:
        return optional(bytes, type->element, depth);
      case Type::Kind::kOpaque:
        break;
    }
    return unsupported("there is no file form for values of type " + to_string(*type));
  }

 private:
  Result<RunValue> bare(std::string_view bytes, const Type* element, int depth) {
    TRY(RunValue content, value(bytes, element, depth + 1));
    return RunValue::optional_of(std::move(content));
  }
  Result<RunValue> held(Held kind, std::string_view bytes, const Type* type, int depth) {
    const Type* inner = type != nullptr ? type->element : nullptr;
    switch (kind) {
      case Held::kTensor:
        return tensor(bytes);
      case Held::kSparse:
        return sparse(bytes);
      case Held::kSequence:
        return sequence(bytes, inner, depth);
      case Held::kMap:
        return map(bytes, type, depth);
      default:
        return optional(bytes, inner, depth);
    }
  }
  static Status check(int depth) {
    if (depth > onnx::kMaxDepth)
      return parse_error("values nest deeper than " + std::to_string(onnx::kMaxDepth) + " levels");
    return ok();
  }
  Status whole(const WireReader& reader) {
    if (reader.fault == nullptr) return ok();
    decoder_.malformed(reader);
    return std::move(decoder_.error);
  }

  Decoder decoder_;
  StoragePtr storage_;
};

// ---- writing

/// The constants that views of `value`'s tensors make, kept while both passes of writing run.
template <typename Sink>
class ValueWriter {
 public:
  explicit ValueWriter(Sink& sink) : sink_(sink) {}

  void tensor(const Tensor& tensor, std::string_view name) {
    for (int64_t dim : tensor.dims()) sink_.number(1, static_cast<uint64_t>(dim));
    sink_.number(2, static_cast<uint64_t>(tensor.dtype()));
    if (tensor.is_string())
      for (const std::string& item : tensor.strings()) sink_.bytes(6, item);
    if (!name.empty()) sink_.bytes(8, name);
    if (!tensor.is_string())
      sink_.bytes(9, {reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()});
  }
  void sparse(const SparseValue& value, std::string_view name) {
    sink_.message(1, [&] { tensor(value.values, name); });
    sink_.message(2, [&] { tensor(value.indices, {}); });
    for (int64_t dim : value.dims) sink_.number(3, static_cast<uint64_t>(dim));
  }
  void sequence(const SequenceValue& sequence, std::string_view name) {
    if (!name.empty()) sink_.bytes(1, name);
    const Held kind = sequence.size() == 0 ? Held::kTensor : held(sequence.item(0));
    sink_.number(2, static_cast<uint64_t>(kind));
    for (size_t i = 0; i < sequence.size(); ++i) {
      const RunValue item = sequence.item(i);
      sink_.message(field_in_optional(held(item)), [&] { value(item, {}); });
    }
  }
  void map(const MapValue& map, std::string_view name) {
    if (!name.empty()) sink_.bytes(1, name);
    sink_.number(2, static_cast<uint64_t>(map.keys.dtype()));
    if (map.keys.is_string())
      for (const std::string& key : map.keys.strings()) sink_.bytes(4, key);
    else
      for (int64_t i = 0; i < map.keys.size(); ++i)
        sink_.number(3, static_cast<uint64_t>(map.keys.get_int64(i)));
    SequenceValue values;
    for (size_t i = 0; i < map.size(); ++i) values.items.push_back(map.value(i));
    sink_.message(5, [&] { sequence(values, {}); });
  }
  void optional(const RunValue* content, std::string_view name) {
    if (!name.empty()) sink_.bytes(1, name);
    const Held kind = content != nullptr ? held(*content) : Held::kUndefined;
    sink_.number(2, static_cast<uint64_t>(kind));
    if (content != nullptr) sink_.message(field_in_optional(kind), [&] { value(*content, {}); });
  }
  void value(const RunValue& value, std::string_view name) {
    switch (value.kind()) {
      case RunValue::Kind::kNone:
        return;
      case RunValue::Kind::kTensor:
        return tensor(value.tensor(), name);
      case RunValue::Kind::kSequence:
        return sequence(value.sequence(), name);
      case RunValue::Kind::kOptional:
        return optional(value.optional_content(), name);
      case RunValue::Kind::kMap:
        return map(value.map(), name);
      case RunValue::Kind::kSparse:
        return sparse(value.sparse(), name);
    }
  }

 private:
  static Held held(const RunValue& value) {
    switch (value.kind()) {
      case RunValue::Kind::kSequence:
        return Held::kSequence;
      case RunValue::Kind::kOptional:
        return Held::kOptional;
      case RunValue::Kind::kMap:
        return Held::kMap;
      case RunValue::Kind::kSparse:
        return Held::kSparse;
      default:
        return Held::kTensor;
    }
  }
  Sink& sink_;
};

template <typename Output>
Status write_value(Output& output, const RunValue& value, std::string_view name) {
  if (value.is_none()) return usage_error("there is no value to write");
  onnx::WireSizer sizer;
  ValueWriter<onnx::WireSizer>(sizer).value(value, name);
  auto writer = std::make_unique<onnx::WireWriter<Output>>(output, sizer.sizes);
  ValueWriter<onnx::WireWriter<Output>>(*writer).value(value, name);
  writer->flush();
  return std::move(writer->status);
}

}  // namespace

Result<RunValue> read_tensor_file(std::string_view bytes, const Type* type,
                                  const StoragePtr& storage) {
  if (bytes.data() == nullptr) bytes = "";
  return ValueReader(bytes, storage).value(bytes, type, 0);
}

Result<RunValue> load_tensor_file(const std::string& path, const Type* type) {
  TRY(MappedFile file, MappedFile::open(path));
  auto storage = std::make_shared<Storage>();
  storage->keep(file);
  const size_t slash = path.rfind('/');
  storage->set_folder(slash == path.npos ? "." : path.substr(0, slash + 1));
  return read_tensor_file(file.text(), type, storage).at(file.name());
}

Result<std::string> write_tensor_file(const RunValue& value, std::string_view name) {
  std::string text;
  onnx::StringOutput output{text};
  CHECK_OK(write_value(output, value, name));
  return text;
}

Status save_tensor_file(const RunValue& value, const std::string& path, std::string_view name) {
  TRY(OutputFile file, OutputFile::create(path));
  CHECK_OK(write_value(file, value, name));
  return file.commit();
}

}  // namespace tombolo
