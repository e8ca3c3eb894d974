// Tensors: values between braces, external data, or (where the file's data do not fit their type)
// the bytes of a field.

#include <bit>
#include <cstring>

#include "base/bit_packing.h"
#include "ir/text/parser_impl.h"

namespace tombolo::text {

namespace {

std::string_view bytes_view(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "";
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string count_message(const Constant& constant, uint64_t count, uint64_t given) {
  return std::string(name_of(constant.dtype())) + dims_to_string(constant.dims) + " has " +
         std::to_string(count) + " elements, " + std::to_string(given) + " given";
}

/// Least and greatest code of an integer type, or of the bit patterns of a small float.
void code_range(DType dtype, int64_t& least, int64_t& greatest) {
  const unsigned bits = bits_of(dtype);
  least = is_signed_integer(dtype) ? -(int64_t(1) << (bits - 1)) : 0;
  greatest = is_signed_integer(dtype) ? (int64_t(1) << (bits - 1)) - 1 : (int64_t(1) << bits) - 1;
}

}  // namespace

bool Parser::dims_of(const Type& type, InlineVector<int64_t, 4>& out) {
  if (!type.has_shape) return fail("a tensor needs its dimensions");
  for (const Dim& dim : type.dims) {
    if (dim.kind != Dim::Kind::kValue) return fail("the dimensions of a tensor must be numbers");
    out.push_back(dim.value);
  }
  return true;
}

bool Parser::constant(Constant& out, const Type& type) {
  if (type.kind != Type::Kind::kTensor) return fail("expected the type of a tensor");
  if (present(type.denotation) || present(type.unknown)) return fail("a tensor has no denotation");
  out.data_type = type.elem_type;
  out.has_data_type = type.has_elem_type;
  if (!dims_of(type, out.dims)) return false;
  match('=');
  if (!constant_annotation(out)) return false;
  if (match('{')) return constant_values(out);
  if (peek() != '[') return true;
  Constant::Extra& extra = out.ensure_extra();
  extra.has_location = true;
  extra.location = 1;
  return string_entries(extra.external);
}

bool Parser::constant_annotation(Constant& out) {
  static constexpr std::string_view kKeys[] = {
      "doc_string",  "metadata_props", "segment",    "data_location", "external_data",
      "string_data", "raw_data",       "float_data", "double_data",   "int32_data",
      "int64_data",  "uint64_data",    "unknown"};
  using Encoding = Constant::Encoding;
  return annotation(kKeys, [&](size_t key) {
    auto optional_number = [&](bool& has, int64_t& value) {
      if (match('?')) return true;
      has = true;
      return number(value, "an integer");
    };
    switch (key) {
      case 0:
        return text_value(out.ensure_extra().doc);
      case 1:
        return string_entries(out.ensure_extra().metadata);
      case 2: {
        Constant::Extra& extra = out.ensure_extra();
        extra.has_segment = true;
        return expect('[', "to begin a segment") &&
               optional_number(extra.has_segment_begin, extra.segment_begin) &&
               expect(',', "between begin and end") &&
               optional_number(extra.has_segment_end, extra.segment_end) &&
               expect(']', "after the end");
      }
      case 3:
        out.ensure_extra().has_location = true;
        return int32_value(out.ensure_extra().location);
      case 4:
        return string_entries(out.ensure_extra().external);
      case 5:
        out.encoding = Encoding::kString;
        return texts_value(out.strings);
      case 12:
        return hex_value(out.ensure_extra().unknown);
      default: {
        static constexpr Encoding kEncodings[] = {Encoding::kRaw,    Encoding::kFloat,
                                                  Encoding::kDouble, Encoding::kInt32,
                                                  Encoding::kInt64,  Encoding::kUInt64};
        out.encoding = kEncodings[key - 6];
        return hex_value(out.bytes);
      }
    }
  });
}

/// Behind the '{'. All types but strings are stored raw; an empty list is no data at all.
bool Parser::constant_values(Constant& out) {
  if (match('}')) return true;
  const DType dtype = out.dtype();
  if (dtype == DType::kUndefined) return fail("values need an element type");
  const int64_t elements = element_count(out.dims);
  if (elements < 0) return fail("no tensor has the shape " + dims_to_string(out.dims));
  uint64_t count = static_cast<uint64_t>(elements);
  // Every literal takes a character and a separator: this bounds what is allocated.
  if (count > remaining() / 2 + 1)
    return fail(count_message(out, count, remaining() / 2 + 1) + " at most");
  switch (dtype) {
    case DType::kString:
      return strings_of(out, count);
    case DType::kComplex64:
      return numbers_of<float>(out, count * 2);
    case DType::kFloat32:
      return numbers_of<float>(out, count);
    case DType::kComplex128:
      return numbers_of<double>(out, count * 2);
    case DType::kFloat64:
      return numbers_of<double>(out, count);
    case DType::kInt64:
      return numbers_of<int64_t>(out, count);
    case DType::kUInt64:
      return numbers_of<uint64_t>(out, count);
    default:
      return codes_of(out, dtype, count);
  }
}

bool Parser::strings_of(Constant& out, uint64_t count) {
  if (!charge(count * sizeof(Text))) return false;
  out.encoding = Constant::Encoding::kString;
  out.strings.reserve(count);
  do {
    if (out.strings.size() == count) return fail(count_message(out, count, count + 1) + " or more");
    if (!text_value(out.strings.emplace_back())) return false;
  } while (match(','));
  if (out.strings.size() != count) return fail(count_message(out, count, out.strings.size()));
  return expect('}', "after the last element");
}

template <typename T>
bool Parser::numbers_of(Constant& out, uint64_t count) {
  if (!charge(count * sizeof(T))) return false;
  auto block = storage().allocate(count * sizeof(T));
  uint64_t at = 0;
  do {
    if (at == count) return fail(count_message(out, count, count + 1) + " or more");
    T value;
    if (!number(value, "a number")) return false;
    std::memcpy(block.data() + at++ * sizeof(T), &value, sizeof(T));
  } while (match(','));
  if (at != count) return fail(count_message(out, count, at));
  out.encoding = Constant::Encoding::kRaw;
  out.bytes = bytes_view(block);
  return expect('}', "after the last element");
}

/// Types of at most 32 bits. An integer is the value of an integer type and the bit pattern of a
/// small float (as upstream has it); a number with a point or exponent, `inf` and `nan` are
/// converted to the small float.
bool Parser::codes_of(Constant& out, DType dtype, uint64_t count) {
  const auto bytes = packed_bytes(dtype, count);
  if (!bytes || !charge(*bytes)) return false;
  auto block = storage().allocate(*bytes);
  std::memset(block.data(), 0, block.size());
  Tensor tensor = Tensor::view(dtype, out.dims, block, nullptr);
  const unsigned bits = bits_of(dtype);
  int64_t least, greatest;
  code_range(dtype, least, greatest);
  uint64_t at = 0;
  do {
    if (at == count) return fail(count_message(out, count, count + 1) + " or more");
    Number literal;
    if (!number(literal, "a number")) return false;
    if (is_float(dtype) && !literal.is_integer) {
      double value;
      if (!convert(literal, value)) return false;
      tensor.set_double(static_cast<int64_t>(at++), value);
      continue;
    }
    int64_t value;
    if (!convert(literal, value)) return false;
    if (value < least || value > greatest)
      return fail(std::to_string(value) + " does not fit " + std::string(name_of(dtype)), {},
                  position() - literal.text.size());
    const uint64_t code = static_cast<uint64_t>(value) & ((uint64_t(1) << bits) - 1);
    const uint64_t bit = at++ * bits;
    if (bits >= 8) {
      std::memcpy(block.data() + bit / 8, &code, bits / 8);
    } else {
      const auto shifted = static_cast<unsigned>(code) << (bit % 8);
      block[bit / 8] |= static_cast<std::byte>(shifted & 0xFF);
      if (shifted > 0xFF) block[bit / 8 + 1] |= static_cast<std::byte>(shifted >> 8);
    }
  } while (match(','));
  if (at != count) return fail(count_message(out, count, at));
  out.encoding = Constant::Encoding::kRaw;
  out.bytes = bytes_view(block);
  return expect('}', "after the last element");
}

/// `type name? ...` or `?`
bool Parser::whole_constant(Constant& out, bool& has) {
  has = !match('?');
  if (!has) return true;
  const Type* type;
  if (!this->type(type)) return false;
  if (type == nullptr) return fail("a tensor needs a type");
  if (next_is_name()) {
    Text found;
    if (!name(found, "the name of the tensor")) return false;
    out.name = keep(found);
  }
  return constant(out, *type);
}

/// Behind `sparse_tensor(T[dims]) name`: `= { values, indices }`, each a tensor or `?`.
bool Parser::sparse_constant(SparseConstant& out, const Type& type) {
  static constexpr std::string_view kKeys[] = {"unknown"};
  if (!dims_of(type, out.dims)) return false;
  match('=');
  return annotation(kKeys, [&](size_t) { return hex_value(out.unknown); }) &&
         expect('{', "before the values of the sparse tensor") &&
         whole_constant(out.values, out.has_values) &&
         expect(',', "between the values and the indices") &&
         whole_constant(out.indices, out.has_indices) &&
         expect('}', "after the indices of the sparse tensor");
}

}  // namespace tombolo::text
