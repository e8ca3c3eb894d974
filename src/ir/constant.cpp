#include "ir/constant.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tombolo {

namespace {

std::string label(const Constant& constant) {
  return "tensor \"" + std::string(constant.name) + "\"";
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Next varint of `bytes`, or false at a malformed end.
bool next_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0, i = 0; i < bytes.size() && i < 10; ++i, shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

/// int32_data, int64_data, uint64_data: each varint's low bits, `width` bytes an entry.
Result<Tensor> decode_varints(const Constant& constant, DType dtype, uint64_t entries, size_t width,
                              std::span<const int64_t> dims) {
  // Every varint takes at least a byte, so this bounds the allocation by the file's size.
  if (entries > constant.bytes.size())
    return parse_error(label(constant) + " has fewer values than its shape " +
                       dims_to_string(dims) + " needs");
  TRY(Tensor tensor, Tensor::allocate(dtype, dims));
  std::string_view rest = constant.bytes;
  std::byte* out = tensor.mutable_bytes().data();
  std::byte* const end = out + tensor.bytes().size();
  for (uint64_t i = 0; i < entries; ++i) {
    uint64_t value;
    if (!next_varint(rest, value))
      return parse_error(label(constant) + " has fewer values than its shape " +
                         dims_to_string(dims) + " needs");
    const size_t take = std::min<size_t>(width, static_cast<size_t>(end - out));
    std::memcpy(out, &value, take);  // little-endian: the low bytes come first
    out += take;
  }
  if (!rest.empty())
    return parse_error(label(constant) + " has more values than its shape " + dims_to_string(dims) +
                       " says");
  return tensor;
}

Constant::Encoding natural_encoding(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return Constant::Encoding::kFloat;
    case DType::kFloat64:
    case DType::kComplex128:
      return Constant::Encoding::kDouble;
    case DType::kInt64:
      return Constant::Encoding::kInt64;
    case DType::kUInt32:
    case DType::kUInt64:
      return Constant::Encoding::kUInt64;
    case DType::kString:
      return Constant::Encoding::kString;
    default:
      return Constant::Encoding::kInt32;
  }
}

Result<Tensor> decode_int32_data(const Constant& constant, DType dtype, uint64_t count,
                                 std::span<const int64_t> dims) {
  // SPEC onnx.proto, int32_data: 4-bit types hold two, 2-bit types four elements an entry (one
  // byte); float6 holds one element an entry.
  if (dtype == DType::kFloat6E2M3 || dtype == DType::kFloat6E3M2) {
    if (count > constant.bytes.size())
      return parse_error(label(constant) + " has fewer values than its shape needs");
    TRY(Tensor tensor, Tensor::allocate(dtype, dims));
    auto out = tensor.mutable_bytes();
    std::memset(out.data(), 0, out.size());
    std::string_view rest = constant.bytes;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t value;
      if (!next_varint(rest, value))
        return parse_error(label(constant) + " has fewer values than its shape needs");
      const uint64_t bit = i * 6;
      const auto code = static_cast<unsigned>(value & 63) << (bit % 8);
      out[bit / 8] |= static_cast<std::byte>(code & 0xFF);
      if (code > 0xFF) out[bit / 8 + 1] |= static_cast<std::byte>(code >> 8);
    }
    if (!rest.empty()) return parse_error(label(constant) + " has more values than its shape says");
    return tensor;
  }
  if (is_sub_byte(dtype)) {
    const uint64_t entries = *packed_bytes(dtype, count);
    return decode_varints(constant, dtype, entries, 1, dims);
  }
  return decode_varints(constant, dtype, count, bytes_of(dtype), dims);
}

}  // namespace

DType Constant::dtype() const { return dtype_from_number(data_type).value_or(DType::kUndefined); }

Result<ExternalData> external_data(const Constant& constant) {
  ExternalData external;
  bool has_location = false;
  for (const StringEntry& entry : constant.extra->external) {
    auto number = [&](uint64_t& out) -> Status {
      auto [end, code] =
          std::from_chars(entry.value.data(), entry.value.data() + entry.value.size(), out);
      if (code != std::errc() || end != entry.value.data() + entry.value.size())
        return parse_error(label(constant) + " has external_data " + std::string(entry.key) +
                           " \"" + std::string(entry.value) + "\", which is not a number");
      return ok();
    };
    if (entry.key == "location") {
      external.location = entry.value;
      has_location = true;
    } else if (entry.key == "offset") {
      CHECK_OK(number(external.offset));
    } else if (entry.key == "length") {
      CHECK_OK(number(external.length));
      external.has_length = true;
    } else if (entry.key == "checksum") {
      external.checksum = entry.value;
    }
  }
  if (!has_location) return parse_error(label(constant) + " is external but has no location entry");
  return external;
}

Result<Tensor> Constant::lazy_value(const StoragePtr& storage) const {
  if (deferred() == nullptr) return value(storage);
  return Tensor::of_deferred(dtype(), dims, extra->deferred);
}

Result<Tensor> Constant::value(const StoragePtr& storage) const {
  if (deferred() != nullptr) return Tensor::of_deferred(dtype(), dims, extra->deferred).clone();
  const DType type = dtype();
  if (type == DType::kUndefined)
    return parse_error(label(*this) + " has the unknown element type " + std::to_string(data_type));
  const int64_t count = element_count(dims);
  if (count < 0)
    return parse_error(label(*this) + " has the impossible shape " + dims_to_string(dims));

  if (is_external()) {
    if (type == DType::kString) return parse_error(label(*this) + ": strings cannot be external");
    TRY(ExternalData external, external_data(*this));
    auto need = packed_bytes(type, static_cast<uint64_t>(count));
    if (!need || (external.has_length && external.length != *need))
      return parse_error(label(*this) + " needs " + (need ? std::to_string(*need) : "too many") +
                         " bytes, but its external data length is " +
                         std::to_string(external.length));
    TRY(std::string_view file, storage->external_file(external.location));
    if (external.offset > file.size() || *need > file.size() - external.offset)
      return parse_error(label(*this) + " needs bytes " + std::to_string(external.offset) + " to " +
                         std::to_string(external.offset + *need) + " of \"" +
                         std::string(external.location) + "\", which has only " +
                         std::to_string(file.size()));
    return Tensor::view(type, dims, as_bytes(file.substr(external.offset, *need)), storage);
  }
  if (encoding == Encoding::kNone) {
    if (count != 0) return parse_error(label(*this) + " has no data");
    return Tensor::allocate(type, dims);
  }
  if (encoding == Encoding::kRaw) {
    if (type == DType::kString) return parse_error(label(*this) + " keeps strings in raw_data");
    auto need = packed_bytes(type, static_cast<uint64_t>(count));
    if (!need || bytes.size() != *need)
      return parse_error(label(*this) + " of shape " + dims_to_string(dims) + " needs " +
                         (need ? std::to_string(*need) : "too many") + " bytes of raw_data, has " +
                         std::to_string(bytes.size()));
    return Tensor::view(type, dims, as_bytes(bytes), storage);
  }
  if (encoding != natural_encoding(type))
    return parse_error(label(*this) + " keeps its data in the wrong field for type " +
                       std::string(name_of(type)));
  switch (encoding) {
    case Encoding::kString: {
      if (strings.size() != static_cast<size_t>(count))
        return parse_error(label(*this) + " has " + std::to_string(strings.size()) +
                           " strings, its shape says " + std::to_string(count));
      return Tensor::of_strings(dims, std::vector<std::string>(strings.begin(), strings.end()));
    }
    case Encoding::kFloat:
    case Encoding::kDouble: {
      auto need = packed_bytes(type, static_cast<uint64_t>(count));
      if (!need || bytes.size() != *need)
        return parse_error(label(*this) + " of shape " + dims_to_string(dims) +
                           " does not have as many values as its shape says");
      return Tensor::view(type, dims, as_bytes(bytes), storage);
    }
    case Encoding::kInt64:
      return decode_varints(*this, type, static_cast<uint64_t>(count), 8, dims);
    case Encoding::kUInt64:
      return decode_varints(*this, type, static_cast<uint64_t>(count), bytes_of(type), dims);
    default:
      return decode_int32_data(*this, type, static_cast<uint64_t>(count), dims);
  }
}

namespace {
Constant described(DType dtype, std::span<const int64_t> dims, Text name, Storage& storage) {
  Constant constant;
  constant.name = present(name) ? storage.copy(name) : Text();
  constant.data_type = static_cast<int32_t>(dtype);
  constant.has_data_type = true;
  constant.dims.assign(dims);
  return constant;
}
}  // namespace

Constant Constant::from_deferred(DType dtype, std::span<const int64_t> dims,
                                 std::shared_ptr<const Deferred> elements, Text name,
                                 Storage& storage) {
  Constant constant = described(dtype, dims, name, storage);
  constant.ensure_extra().deferred = std::move(elements);
  return constant;
}

Constant Constant::from_tensor(const Tensor& tensor, Text name, Storage& storage) {
  Constant constant = described(tensor.dtype(), tensor.dims(), name, storage);
  if (tensor.is_string()) {
    constant.encoding = Encoding::kString;
    for (const std::string& text : tensor.strings()) constant.strings.push_back(storage.copy(text));
    return constant;
  }
  constant.encoding = Encoding::kRaw;
  auto shared = std::make_shared<Tensor>(tensor);
  constant.bytes = {reinterpret_cast<const char*>(shared->bytes().data()), shared->bytes().size()};
  if (constant.bytes.data() == nullptr) constant.bytes = "";
  storage.keep(std::move(shared));
  return constant;
}

}  // namespace tombolo
