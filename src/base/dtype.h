#pragma once

// The element types of tensors. Numbers and names are those of ONNX (TensorProto.DataType of
// onnx.proto, IR version 14), so that reading and printing need no second table.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tombolo {

enum class DType : uint8_t {
  kUndefined = 0,
  kFloat32 = 1,
  kUInt8 = 2,
  kInt8 = 3,
  kUInt16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kFloat64 = 11,
  kUInt32 = 12,
  kUInt64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUInt4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUInt2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};

inline constexpr size_t kDTypeCount = 29;  ///< kUndefined included

enum class DTypeClass : uint8_t { kNone, kFloat, kInt, kUInt, kBool, kComplex, kString };

struct DTypeInfo {
  std::string_view name;   ///< as in ONNX text and in type strings: tensor(NAME)
  std::string_view numpy;  ///< numpy or ml_dtypes name
  uint8_t bits;            ///< per element; 0 for string and undefined
  DTypeClass kind;
};

/// One row a type, indexed by the ONNX number.
inline constexpr std::array<DTypeInfo, kDTypeCount> kDTypes = {{
    {"undefined", "void", 0, DTypeClass::kNone},
    {"float", "float32", 32, DTypeClass::kFloat},
    {"uint8", "uint8", 8, DTypeClass::kUInt},
    {"int8", "int8", 8, DTypeClass::kInt},
    {"uint16", "uint16", 16, DTypeClass::kUInt},
    {"int16", "int16", 16, DTypeClass::kInt},
    {"int32", "int32", 32, DTypeClass::kInt},
    {"int64", "int64", 64, DTypeClass::kInt},
    {"string", "object", 0, DTypeClass::kString},
    {"bool", "bool", 8, DTypeClass::kBool},
    {"float16", "float16", 16, DTypeClass::kFloat},
    {"double", "float64", 64, DTypeClass::kFloat},
    {"uint32", "uint32", 32, DTypeClass::kUInt},
    {"uint64", "uint64", 64, DTypeClass::kUInt},
    {"complex64", "complex64", 64, DTypeClass::kComplex},
    {"complex128", "complex128", 128, DTypeClass::kComplex},
    {"bfloat16", "bfloat16", 16, DTypeClass::kFloat},
    {"float8e4m3fn", "float8_e4m3fn", 8, DTypeClass::kFloat},
    {"float8e4m3fnuz", "float8_e4m3fnuz", 8, DTypeClass::kFloat},
    {"float8e5m2", "float8_e5m2", 8, DTypeClass::kFloat},
    {"float8e5m2fnuz", "float8_e5m2fnuz", 8, DTypeClass::kFloat},
    {"uint4", "uint4", 4, DTypeClass::kUInt},
    {"int4", "int4", 4, DTypeClass::kInt},
    {"float4e2m1", "float4_e2m1fn", 4, DTypeClass::kFloat},
    {"float8e8m0", "float8_e8m0fnu", 8, DTypeClass::kFloat},
    {"uint2", "uint2", 2, DTypeClass::kUInt},
    {"int2", "int2", 2, DTypeClass::kInt},
    {"float6e2m3", "float6_e2m3fn", 6, DTypeClass::kFloat},
    {"float6e3m2", "float6_e3m2fn", 6, DTypeClass::kFloat},
}};

/// The row of a type; the row of kUndefined for a value outside the enumeration.
constexpr const DTypeInfo& info_of(DType type) {
  const auto index = static_cast<size_t>(type);
  return kDTypes[index < kDTypeCount ? index : 0];
}

/// The type with this ONNX number (1 to 28), or nothing: kUndefined is not a type to compute with.
constexpr std::optional<DType> dtype_from_number(int64_t number) {
  if (number < 1 || number >= static_cast<int64_t>(kDTypeCount)) return std::nullopt;
  return static_cast<DType>(number);
}

/// The type with this ONNX text name ("float", "float8e4m3fn"), or nothing.
std::optional<DType> dtype_from_name(std::string_view name);

/// As dtype_from_name, and also numpy's names where they differ ("float32", "float8_e4m3fn"):
/// for what people type, not for ONNX text.
std::optional<DType> dtype_from_user_name(std::string_view name);

constexpr std::string_view name_of(DType type) { return info_of(type).name; }
constexpr std::string_view numpy_name_of(DType type) { return info_of(type).numpy; }
constexpr unsigned bits_of(DType type) { return info_of(type).bits; }
constexpr DTypeClass class_of(DType type) { return info_of(type).kind; }

constexpr bool is_float(DType type) { return class_of(type) == DTypeClass::kFloat; }
constexpr bool is_signed_integer(DType type) { return class_of(type) == DTypeClass::kInt; }
constexpr bool is_unsigned_integer(DType type) { return class_of(type) == DTypeClass::kUInt; }
/// Signed or unsigned; bool is not an integer.
constexpr bool is_integer(DType type) {
  return is_signed_integer(type) || is_unsigned_integer(type);
}
constexpr bool is_complex(DType type) { return class_of(type) == DTypeClass::kComplex; }
constexpr bool is_string(DType type) { return type == DType::kString; }
/// Elements that do not start at byte boundaries: 2, 4 and 6 bits.
constexpr bool is_sub_byte(DType type) { return bits_of(type) != 0 && bits_of(type) < 8; }
/// Integers of eight bits.
constexpr bool is_byte(DType type) { return is_integer(type) && bits_of(type) == 8; }
/// float16 and bfloat16.
constexpr bool is_short_float(DType type) {
  return type == DType::kFloat16 || type == DType::kBFloat16;
}
/// The five 8-bit floats.
constexpr bool is_float8(DType type) { return is_float(type) && bits_of(type) == 8; }

/// Bytes per element; 0 for string, undefined and the sub-byte types.
constexpr size_t bytes_of(DType type) { return bits_of(type) / 8; }

/// Bytes of raw_data for `elements` elements: bits rounded up to a whole byte, once, at the end
/// (so five 6-bit values take four bytes, as onnx.numpy_helper packs them). Nothing if the
/// number overflows, or if the type has no fixed width (string, undefined).
constexpr std::optional<uint64_t> packed_bytes(DType type, uint64_t elements) {
  const uint64_t bits = bits_of(type);
  if (bits == 0) return std::nullopt;
  // Eight elements fill exactly `bits` bytes; what remains is fewer than eight elements.
  const uint64_t octets = elements / 8;
  const uint64_t tail = ((elements % 8) * bits + 7) / 8;
  if (octets > (UINT64_MAX - tail) / bits) return std::nullopt;
  return octets * bits + tail;
}

}  // namespace tombolo
