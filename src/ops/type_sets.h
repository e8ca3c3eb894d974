#pragma once

// Sets of value types, as the operators' type parameters allow them, and names for those that
// recur. A set is a few words of bits, so that checking a type is one test.

#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace tombolo {

/// A set of value types. In the first four words bit d stands for the element type d.
struct TypeSet {
  uint32_t tensors = 0;             ///< tensor(d)
  uint32_t sequences = 0;           ///< seq(tensor(d))
  uint32_t optionals = 0;           ///< optional(tensor(d))
  uint32_t optional_sequences = 0;  ///< optional(seq(tensor(d)))
  uint32_t maps = 0;                ///< bit k: the k-th row of kMapTypes

  constexpr TypeSet operator|(TypeSet o) const {
    return {tensors | o.tensors, sequences | o.sequences, optionals | o.optionals,
            optional_sequences | o.optional_sequences, maps | o.maps};
  }
  constexpr TypeSet operator&(TypeSet o) const {
    return {tensors & o.tensors, sequences & o.sequences, optionals & o.optionals,
            optional_sequences & o.optional_sequences, maps & o.maps};
  }
  constexpr bool operator==(const TypeSet&) const = default;
  constexpr bool empty() const { return *this == TypeSet{}; }
  constexpr bool covers(TypeSet o) const { return (*this & o) == o; }

  constexpr bool has_tensor(DType type) const { return has(tensors, type); }
  constexpr bool has_sequence(DType type) const { return has(sequences, type); }
  constexpr bool has_optional(DType type) const { return has(optionals, type); }
  constexpr bool has_optional_sequence(DType type) const { return has(optional_sequences, type); }

 private:
  static constexpr bool has(uint32_t word, DType type) {
    return (word >> static_cast<unsigned>(type) & 1) != 0;
  }
};

/// The types that are neither a tensor nor a sequence or optional of tensors.
inline constexpr std::string_view kMapTypes[] = {
    "map(int64, string)",      "map(int64, float)",     "map(int64, double)",
    "map(string, int64)",      "map(string, float)",    "map(string, double)",
    "seq(map(string, float))", "seq(map(int64, float))"};

namespace ops {

constexpr TypeSet tensor_of(DType type) { return {1u << static_cast<unsigned>(type)}; }
constexpr TypeSet seq_of(TypeSet set) { return {.sequences = set.tensors}; }
/// Of tensors and of sequences.
constexpr TypeSet optional_of(TypeSet set) {
  return {.optionals = set.tensors, .optional_sequences = set.sequences};
}

// Single types and narrow families.
inline constexpr TypeSet kBool = tensor_of(DType::kBool), kStr = tensor_of(DType::kString);
inline constexpr TypeSet kF16 = tensor_of(DType::kFloat16), kF32 = tensor_of(DType::kFloat32),
                         kF64 = tensor_of(DType::kFloat64), kBf16 = tensor_of(DType::kBFloat16);
inline constexpr TypeSet kI8 = tensor_of(DType::kInt8), kI16 = tensor_of(DType::kInt16),
                         kI32 = tensor_of(DType::kInt32), kI64 = tensor_of(DType::kInt64);
inline constexpr TypeSet kU8 = tensor_of(DType::kUInt8), kU16 = tensor_of(DType::kUInt16),
                         kU32 = tensor_of(DType::kUInt32), kU64 = tensor_of(DType::kUInt64);
inline constexpr TypeSet kComplex = tensor_of(DType::kComplex64) | tensor_of(DType::kComplex128);

// Maps, in the order of kMapTypes.
inline constexpr TypeSet kMapI64Str = {.maps = 1}, kMapI64F32 = {.maps = 2},
                         kMapI64F64 = {.maps = 4}, kMapStrI64 = {.maps = 8},
                         kMapStrF32 = {.maps = 16}, kMapStrF64 = {.maps = 32},
                         kSeqMapStrF32 = {.maps = 64}, kSeqMapI64F32 = {.maps = 128};

// Small types, in the order in which operator sets took them up.
inline constexpr TypeSet kFp8 = tensor_of(DType::kFloat8E4M3FN) |
                                tensor_of(DType::kFloat8E4M3FNUZ) | tensor_of(DType::kFloat8E5M2) |
                                tensor_of(DType::kFloat8E5M2FNUZ);                    // opset 19
inline constexpr TypeSet kInt4 = tensor_of(DType::kInt4) | tensor_of(DType::kUInt4);  // 21
inline constexpr TypeSet kFp4 = tensor_of(DType::kFloat4E2M1);                        // 23
inline constexpr TypeSet kE8m0 = tensor_of(DType::kFloat8E8M0);                       // 24
inline constexpr TypeSet kInt2 = tensor_of(DType::kInt2) | tensor_of(DType::kUInt2);  // 25
inline constexpr TypeSet kFp6 =
    tensor_of(DType::kFloat6E2M3) | tensor_of(DType::kFloat6E3M2);  // 28

// Families.
inline constexpr TypeSet kFloats = kF16 | kF32 | kF64;
inline constexpr TypeSet kFloats32 = kF32 | kF64;
inline constexpr TypeSet kInt8s = kI8 | kU8;
inline constexpr TypeSet kInt16s = kI16 | kU16;
inline constexpr TypeSet kIndices = kI32 | kI64;
inline constexpr TypeSet kInt32s = kI32 | kI64 | kU32 | kU64;
inline constexpr TypeSet kSigned = kI8 | kI16 | kI32 | kI64;
inline constexpr TypeSet kUnsigned = kU8 | kU16 | kU32 | kU64;
inline constexpr TypeSet kInts = kSigned | kUnsigned;
inline constexpr TypeSet kNumbers = kInts | kFloats;
/// The fifteen element types of the first operator sets: all but bfloat16 and the small ones.
inline constexpr TypeSet kAll = kNumbers | kBool | kStr | kComplex;
inline constexpr TypeSet kSmall = kFp8 | kInt4 | kFp4 | kE8m0 | kInt2 | kFp6;

}  // namespace ops
}  // namespace tombolo
