// Tensors: the values where they can be read, else the bytes of the field that holds them.

#include <cstring>

#include "ir/text/printer_impl.h"

namespace tombolo::text {

namespace {

std::string_view field_name(Constant::Encoding encoding) {
  switch (encoding) {
    case Constant::Encoding::kRaw:
      return "raw_data";
    case Constant::Encoding::kFloat:
      return "float_data";
    case Constant::Encoding::kDouble:
      return "double_data";
    case Constant::Encoding::kInt32:
      return "int32_data";
    case Constant::Encoding::kInt64:
      return "int64_data";
    case Constant::Encoding::kUInt64:
      return "uint64_data";
    default:
      return "";
  }
}

/// Elements of 2, 4 or 6 bits may leave bits of the last byte unused: those must be zero to be
/// lost.
bool has_stray_bits(const Tensor& tensor) {
  const uint64_t bits = static_cast<uint64_t>(tensor.size()) * bits_of(tensor.dtype());
  if (!is_sub_byte(tensor.dtype()) || bits % 8 == 0 || tensor.bytes().empty()) return false;
  return (static_cast<unsigned>(tensor.bytes().back()) >> (bits % 8)) != 0;
}

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace

void Printer::constant_type(const Constant& constant) {
  put(name_of(constant.dtype()));
  if (!constant.dims.empty()) {
    put('[');
    list(constant.dims, ",", [&](int64_t dim) { number(dim); });
    put(']');
  }
  if (constant.has_data_type && constant.dtype() == DType::kUndefined)
    Annotation(*this).number("elem_type", constant.data_type);
}

void Printer::constant_data(const Constant& constant, bool initializer) {
  const Constant::Extra* extra = constant.extra.get();
  const bool external = constant.is_external();
  const bool has_bytes = constant.encoding != Constant::Encoding::kNone;
  Tensor tensor;
  bool readable = false;
  if (constant.encoding == Constant::Encoding::kString) {
    // Strings are printed from where they are.
    readable = !external && constant.dtype() == DType::kString &&
               element_count(constant.dims) == static_cast<int64_t>(constant.strings.size());
  } else if (!external && has_bytes) {
    auto value = constant.value(storage_);
    if (value.ok()) {
      tensor = *std::move(value);
      readable =
          !has_stray_bits(tensor) && static_cast<uint64_t>(tensor.size()) <= options_.hex_above;
    }
  }
  bool annotated = has_bytes && !readable;
  if (extra != nullptr)
    annotated = annotated || present(extra->doc) || !extra->metadata.empty() ||
                extra->has_segment || (extra->has_location && !external) ||
                (!external && !extra->external.empty()) || !extra->unknown.empty();
  if (initializer || annotated) put(" =");
  if (annotated) {
    Annotation fields(*this);
    if (extra != nullptr) {
      fields.text("doc_string", extra->doc);
      fields.entries("metadata_props", extra->metadata);
      if (extra->has_segment) {
        fields.key("segment");
        auto bound = [&](bool has, int64_t value) {
          if (has)
            number(value);
          else
            put('?');
        };
        put('[');
        bound(extra->has_segment_begin, extra->segment_begin);
        put(", ");
        bound(extra->has_segment_end, extra->segment_end);
        put(']');
      }
      if (extra->has_location && !external) fields.number("data_location", extra->location);
      if (!external) fields.entries("external_data", extra->external);
      fields.hex("unknown", extra->unknown);
    }
    if (has_bytes && !readable) {
      if (constant.encoding == Constant::Encoding::kString) {
        fields.key("string_data");
        put('[');
        list(constant.strings, ", ", [&](Text text) { quoted(text); });
        put(']');
      } else {
        fields.key(field_name(constant.encoding));
        hex(constant.bytes);
      }
    }
  }
  if (external) {
    put(' ');
    entries(extra->external);
  } else if (readable) {
    put(" {");
    if (constant.encoding == Constant::Encoding::kString)
      list(constant.strings, ", ", [&](Text text) { quoted(text); });
    else
      elements(tensor);
    put('}');
  } else if (!has_bytes) {
    put(" {}");
  }
}

void Printer::named_constant(const Constant& constant) {
  constant_type(constant);
  if (!constant.name.empty()) {
    put(' ');
    name(constant.name);
  }
  constant_data(constant, false);
}

void Printer::sparse(const SparseConstant& constant, Text shown, bool initializer) {
  put("sparse_tensor(");
  put(name_of(constant.values.dtype()));
  if (!constant.dims.empty()) {
    put('[');
    list(constant.dims, ",", [&](int64_t dim) { number(dim); });
    put(']');
  }
  put(')');
  if (initializer || !shown.empty()) {
    put(' ');
    name(shown);
  }
  put(" =");
  Annotation(*this).hex("unknown", constant.unknown);
  put(" {");
  if (constant.has_values) {
    constant_type(constant.values);  // its name stands in front
    constant_data(constant.values, false);
  } else {
    put('?');
  }
  put(", ");
  if (constant.has_indices)
    named_constant(constant.indices);
  else
    put('?');
  put('}');
}

void Printer::elements(const Tensor& tensor) {
  const std::byte* data = tensor.bytes().data();
  const auto count = static_cast<uint64_t>(tensor.size());
  auto each = [&](uint64_t n, auto&& item) {
    for (uint64_t i = 0; i < n; ++i) {
      if (i != 0) put(", ");
      item(i);
    }
  };
  // A large tensor lets go of its mapped pages behind it, so that printing takes little memory.
  constexpr uint64_t kPrintBlock = uint64_t{16} << 20;
  const std::byte* released = data;
  auto loaded = [&]<typename T, typename Wide>(uint64_t n, T, Wide) {
    each(n, [&](uint64_t i) {
      const std::byte* at = data + i * sizeof(T);
      if (static_cast<uint64_t>(at - released) >= kPrintBlock) {
        storage_->release({reinterpret_cast<const char*>(released), kPrintBlock});
        released += kPrintBlock;
      }
      number(static_cast<Wide>(load<T>(at)));
    });
    if (released != data)
      storage_->release({reinterpret_cast<const char*>(released),
                         static_cast<size_t>(data + n * sizeof(T) - released)});
  };
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return loaded(count, float(), float());
    case DType::kComplex64:
      return loaded(count * 2, float(), float());
    case DType::kFloat64:
      return loaded(count, double(), double());
    case DType::kComplex128:
      return loaded(count * 2, double(), double());
    case DType::kInt64:
      return loaded(count, int64_t(), int64_t());
    case DType::kUInt64:
      return loaded(count, uint64_t(), uint64_t());
    case DType::kUInt32:
      return loaded(count, uint32_t(), uint64_t());
    case DType::kInt32:
      return loaded(count, int32_t(), int64_t());
    case DType::kInt16:
      return loaded(count, int16_t(), int64_t());
    case DType::kInt8:
      return loaded(count, int8_t(), int64_t());
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return loaded(count, uint16_t(), int64_t());
    default:
      break;
  }
  const unsigned bits = bits_of(tensor.dtype());
  if (bits == 8) return loaded(count, uint8_t(), int64_t());
  each(count, [&](uint64_t i) {
    const uint64_t bit = i * bits;
    unsigned code = static_cast<unsigned>(data[bit / 8]) >> (bit % 8);
    if (bit % 8 + bits > 8) code |= static_cast<unsigned>(data[bit / 8 + 1]) << (8 - bit % 8);
    code &= (1u << bits) - 1;
    int64_t value = code;
    if (is_signed_integer(tensor.dtype()) && (code >> (bits - 1)) != 0) value -= int64_t(1) << bits;
    number(value);
  });
}

}  // namespace tombolo::text
