#include <algorithm>

#include "analysis/checker_impl.h"
#include "base/checksum.h"

namespace tombolo {

namespace {

using Encoding = Constant::Encoding;

const char* field_name(Encoding encoding) {
  switch (encoding) {
    case Encoding::kRaw:
      return "raw_data";
    case Encoding::kFloat:
      return "float_data";
    case Encoding::kDouble:
      return "double_data";
    case Encoding::kInt32:
      return "int32_data";
    case Encoding::kInt64:
      return "int64_data";
    case Encoding::kUInt64:
      return "uint64_data";
    case Encoding::kString:
      return "string_data";
    case Encoding::kNone:
      break;
  }
  return "no field";
}

/// The typed field that onnx.proto gives an element type.
Encoding typed_field(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return Encoding::kFloat;
    case DType::kFloat64:
    case DType::kComplex128:
      return Encoding::kDouble;
    case DType::kInt64:
      return Encoding::kInt64;
    case DType::kUInt32:
    case DType::kUInt64:
      return Encoding::kUInt64;
    case DType::kString:
      return Encoding::kString;
    case DType::kUndefined:
      return Encoding::kNone;
    default:
      return Encoding::kInt32;
  }
}

/// True when the wire bytes hold a data field of TensorProto beside the main one.
bool has_second_data_field(std::string_view unknown) {
  // float_data=4 int32_data=5 string_data=6 int64_data=7 raw_data=9 double_data=10 uint64_data=11;
  // all tags are one byte.
  if (unknown.empty()) return false;
  const auto field = static_cast<unsigned char>(unknown[0]) >> 3;
  return field == 4 || field == 5 || field == 6 || field == 7 || field == 9 || field == 10 ||
         field == 11;
}

/// Whether the packed varints all lie in [low, high]; counts them.
struct VarintScan {
  uint64_t count = 0;
  bool complete = true, in_range = true;
  int64_t worst = 0;
};
VarintScan scan_varints(std::string_view bytes, int64_t low, int64_t high) {
  VarintScan scan;
  uint64_t value = 0;
  int shift = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if ((byte & 0x80) != 0) continue;
    ++scan.count;
    // int32 fields keep 32 bits: protobuf sign-extends negatives to ten bytes.
    const auto number = static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(value)));
    if ((number < low || number > high) && scan.in_range) {
      scan.in_range = false;
      scan.worst = number;
    }
    value = 0;
    shift = 0;
  }
  scan.complete = shift == 0;
  return scan;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    size_t more = 0;
    uint32_t point = 0;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if (lead >= 0xc2 && lead < 0xe0)
      more = 1, point = lead & 0x1f;
    else if (lead >= 0xe0 && lead < 0xf0)
      more = 2, point = lead & 0x0f;
    else if (lead >= 0xf0 && lead < 0xf5)
      more = 3, point = lead & 0x07;
    else
      return false;
    if (i + more >= text.size()) return false;
    for (size_t k = 1; k <= more; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if ((byte & 0xc0) != 0x80) return false;
      point = point << 6 | (byte & 0x3f);
    }
    if ((more == 2 && (point < 0x800 || (point >= 0xd800 && point < 0xe000))) ||
        (more == 3 && (point < 0x10000 || point > 0x10ffff)))
      return false;
    i += more + 1;
  }
  return true;
}

}  // namespace

void Checker::constant(const Constant& constant, const Place& place) {
  const DType dtype = constant.dtype();
  if (dtype == DType::kUndefined) {
    report(rules::kTensorType, place,
           constant.has_data_type
               ? "the element type is " + std::to_string(constant.data_type) + ", which is no type"
               : std::string("the tensor does not say its element type"));
    return;
  }
  element_type_ir(dtype, place);
  const int64_t count = element_count(constant.dims.span());
  const auto bytes = count < 0 ? std::nullopt : packed_bytes(dtype, static_cast<uint64_t>(count));
  if (count < 0 || (!bytes && dtype != DType::kString)) {
    report(rules::kTensorDims, place,
           "the dimensions " + dims_to_string(constant.dims.span()) +
               " are negative or too large a product");
    return;
  }
  if (constant.extra && has_second_data_field(constant.extra->unknown))
    report(rules::kTensorField, place, "the tensor has data in two fields");
  if (constant.extra && constant.extra->has_segment)
    report(rules::kTensorField, place,
           "the tensor is a segment of a larger one, which nothing reads");
  if (constant.is_external()) {
    if (constant.encoding != Encoding::kNone &&
        (!constant.bytes.empty() || !constant.strings.empty()))
      report(rules::kTensorField, place,
             std::string("the tensor is external, but also has ") + field_name(constant.encoding));
    if (dtype == DType::kString)
      report(rules::kTensorField, place, "strings cannot be external data");
    else
      external(constant, *bytes, place);
    return;
  }
  if (constant.deferred() == nullptr) inline_data(constant, static_cast<uint64_t>(count), place);
}

void Checker::inline_data(const Constant& constant, uint64_t count, const Place& place) {
  const DType dtype = constant.dtype();
  const std::string shape = std::string(name_of(dtype)) + dims_to_string(constant.dims.span());
  if (constant.encoding == Encoding::kNone) {
    if (count != 0) report(rules::kTensorData, place, "the tensor " + shape + " has no data");
    return;
  }
  if (constant.encoding == Encoding::kRaw) {
    if (dtype == DType::kString)
      return report(rules::kTensorField, place, "strings cannot stand in raw_data",
                    "use string_data");
    const uint64_t needed = *packed_bytes(dtype, count);
    if (constant.bytes.size() != needed)
      return report(rules::kTensorData, place,
                    "raw_data has " + std::to_string(constant.bytes.size()) + " bytes, but " +
                        shape + " takes " + std::to_string(needed));
    if (dtype == DType::kBool)
      for (const char byte : constant.bytes)
        if (byte != 0 && byte != 1)
          return report(rules::kTensorValue, place,
                        "a bool is stored as " + std::to_string(static_cast<unsigned char>(byte)) +
                            ", not 0 or 1");
    return;
  }
  if (constant.encoding != typed_field(dtype))
    return report(
        rules::kTensorField, place,
        std::string(name_of(dtype)) + " data stand in " + field_name(constant.encoding),
        std::string("they belong into ") + field_name(typed_field(dtype)) + " or raw_data");
  const auto expect = [&](uint64_t found, uint64_t needed) {
    if (found != needed)
      report(rules::kTensorData, place,
             std::string(field_name(constant.encoding)) + " has " + std::to_string(found) +
                 " entries, but " + shape + " takes " + std::to_string(needed));
  };
  switch (constant.encoding) {
    case Encoding::kFloat:
      return expect(constant.bytes.size() / 4, is_complex(dtype) ? 2 * count : count);
    case Encoding::kDouble:
      return expect(constant.bytes.size() / 8, is_complex(dtype) ? 2 * count : count);
    case Encoding::kString:
      expect(constant.strings.size(), count);
      for (const Text text : constant.strings)
        if (!is_utf8(text))
          return report(rules::kTensorValue, place, "a string is not UTF-8: " + quote_name(text));
      return;
    case Encoding::kInt64:
    case Encoding::kUInt64: {
      const uint64_t found = static_cast<uint64_t>(
          std::count_if(constant.bytes.begin(), constant.bytes.end(),
                        [](char c) { return (static_cast<unsigned char>(c) & 0x80) == 0; }));
      return expect(found, count);
    }
    case Encoding::kInt32: {
      // Entries hold the element, or its bits; elements of 4 and 2 bits are packed into bytes.
      int64_t low = INT32_MIN, high = INT32_MAX;
      const unsigned bits = bits_of(dtype);
      if (dtype == DType::kBool) {
        low = 0;
        high = 1;
      } else if (is_signed_integer(dtype) && bits >= 8 && bits < 32) {
        low = -(int64_t{1} << (bits - 1));
        high = (int64_t{1} << (bits - 1)) - 1;
      } else if (bits >= 8 && bits < 32) {
        low = 0;
        high = (int64_t{1} << bits) - 1;
      } else if (bits == 6) {
        low = 0;
        high = 63;
      }
      const VarintScan scan = scan_varints(constant.bytes, low, high);
      if (!scan.complete)
        return report(rules::kTensorData, place, "int32_data ends within a number");
      if (!scan.in_range)
        report(rules::kTensorValue, place,
               "int32_data holds " + std::to_string(scan.worst) + ", which is no " +
                   std::string(name_of(dtype)));
      if (bits < 6) {  // writers differ: a byte an entry, or as many as fit into 32 bits
        const uint64_t per_byte = 8 / bits, per_word = 32 / bits;
        if (scan.count == (count + per_byte - 1) / per_byte ||
            scan.count == (count + per_word - 1) / per_word)
          return;
        return expect(scan.count, (count + per_byte - 1) / per_byte);
      }
      return expect(scan.count, count);
    }
    case Encoding::kRaw:
    case Encoding::kNone:
      return;
  }
}

void Checker::external(const Constant& constant, uint64_t bytes, const Place& place) {
  const auto data = external_data(constant);
  if (!data) return report(rules::kExternalData, place, data.error().message);
  const auto file = model_.storage().external_file(data->location);
  if (!file) return report(rules::kExternalData, place, file.error().message, file.error().help);
  const uint64_t length = data->has_length ? data->length : bytes;
  if (length != bytes)
    report(rules::kExternalData, place,
           "the external data have " + std::to_string(data->length) +
               " bytes, but the tensor takes " + std::to_string(bytes));
  if (data->offset > file->size() || length > file->size() - data->offset)
    return report(rules::kExternalData, place,
                  "the external data reach from byte " + std::to_string(data->offset) + " over " +
                      std::to_string(length) + " bytes, but " + quote_name(data->location) +
                      " has " + std::to_string(file->size()));
  if (options_.checksums && present(data->checksum)) {
    const std::string found =
        Sha1::of(std::as_bytes(std::span(file->substr(data->offset, length))));
    if (found != data->checksum)
      report(rules::kExternalData, place,
             "the checksum is " + found + ", but " + quote_name(data->checksum) + " is recorded");
  }
}

void Checker::sparse(const SparseConstant& sparse, const Place& place) {
  if (!sparse.has_values || !sparse.has_indices)
    return report(rules::kSparseTensor, place, "the sparse tensor lacks its values or indices");
  const size_t errors = diagnostics_.errors();
  constant(sparse.values, place);
  constant(sparse.indices, place);
  if (diagnostics_.errors() != errors) return;
  if (sparse.dims.empty())
    return report(rules::kSparseTensor, place, "the sparse tensor has rank 0");
  for (const int64_t dim : sparse.dims.span())
    if (dim <= 0)
      return report(
          rules::kSparseTensor, place,
          "the dimensions " + dims_to_string(sparse.dims.span()) + " are not all positive");
  const int64_t total = element_count(sparse.dims.span());
  if (total < 0)
    return report(rules::kSparseTensor, place,
                  "the dimensions " + dims_to_string(sparse.dims.span()) + " are too large");
  if (sparse.values.dims.size() != 1)
    return report(rules::kSparseTensor, place,
                  "the values have rank " + std::to_string(sparse.values.dims.size()) + ", not 1");
  const int64_t entries = sparse.values.dims[0];
  const auto rank = static_cast<int64_t>(sparse.dims.size());
  const auto& index_dims = sparse.indices.dims;
  const bool linear = index_dims.size() == 1;
  if (sparse.indices.dtype() != DType::kInt64 ||
      (index_dims.size() != 1 && index_dims.size() != 2) || index_dims[0] != entries ||
      (!linear && index_dims[1] != rank))
    return report(rules::kSparseTensor, place,
                  "the indices are " + std::string(name_of(sparse.indices.dtype())) +
                      dims_to_string(index_dims.span()) + ", but int64[" + std::to_string(entries) +
                      "] or int64[" + std::to_string(entries) + "," + std::to_string(rank) +
                      "] is needed");
  const auto indices = sparse.indices.value(model_.storage_ptr());
  if (!indices) return report(rules::kSparseTensor, place, indices.error().message);
  int64_t previous = -1;
  for (int64_t i = 0; i < entries; ++i) {
    int64_t at = 0;
    if (linear) {
      at = indices->get_int64(i);
    } else {
      for (int64_t k = 0; k < rank; ++k) {
        const int64_t index = indices->get_int64(i * rank + k);
        if (index < 0 || index >= sparse.dims[static_cast<size_t>(k)])
          return report(rules::kSparseTensor, place,
                        "entry " + std::to_string(i) + " has index " + std::to_string(index) +
                            " on axis " + std::to_string(k) + " of " +
                            std::to_string(sparse.dims[static_cast<size_t>(k)]));
        at = at * sparse.dims[static_cast<size_t>(k)] + index;
      }
    }
    if (at < 0 || at >= total)
      return report(rules::kSparseTensor, place,
                    "entry " + std::to_string(i) + " has index " + std::to_string(at) + " of " +
                        std::to_string(total));
    if (at <= previous)
      return report(rules::kSparseTensor, place,
                    "the indices are not ascending and unique at entry " + std::to_string(i));
    previous = at;
  }
}

}  // namespace tombolo
