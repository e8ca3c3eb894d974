#pragma once

// The type of a value: TypeProto. Types are immutable and interned in the model's Storage: two
// values of equal type share one Type, and comparing pointers compares types.

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "ir/storage.h"

namespace tombolo {

/// One dimension of a declared shape: a number, a name or expression, or unknown.
struct Dim {
  enum class Kind : uint8_t { kUnknown, kValue, kParam };
  Kind kind = Kind::kUnknown;
  /// As in the file. Of kUnknown 0, or the negative number by which some exporters say so.
  int64_t value = 0;
  Text param;
  Text denotation;
  Text unknown;

  static Kind kind_of(int64_t value) { return value < 0 ? Kind::kUnknown : Kind::kValue; }
  static Dim of(int64_t value) { return {kind_of(value), value, {}, {}, {}}; }
  static Dim named(Text param) { return {Kind::kParam, 0, param, {}, {}}; }
  friend bool operator==(const Dim&, const Dim&);
};

struct Type {
  enum class Kind : uint8_t { kNone, kTensor, kSparseTensor, kSequence, kMap, kOptional, kOpaque };

  Kind kind = Kind::kNone;
  int32_t elem_type = 0;       ///< tensor, sparse tensor: TensorProto.DataType as in the file
  bool has_elem_type = false;  ///< the field is there
  bool has_shape = false;      ///< false: rank unknown
  std::vector<Dim> dims;
  int32_t key_type = 0;  ///< map
  bool has_key_type = false;
  const Type* element = nullptr;  ///< sequence, optional: element; map: value. May be null.
  Text opaque_domain, opaque_name;
  Text denotation;
  Text unknown;        ///< unknown fields of TypeProto, as wire bytes
  Text unknown_inner;  ///< unknown fields of the member message
  Text unknown_shape;  ///< unknown fields of TensorShapeProto

  bool is_tensor() const { return kind == Kind::kTensor; }
  /// The element type, kUndefined when the file's number is none of ONNX's.
  DType dtype() const;

  static Type tensor(DType dtype);  ///< rank unknown
  static Type tensor(DType dtype, std::vector<Dim> dims);
  static Type sparse_tensor(DType dtype, std::vector<Dim> dims);
  static Type sequence(const Type* element);
  static Type optional(const Type* element);
  static Type map(DType key, const Type* value);

  friend bool operator==(const Type&, const Type&);
};

/// The type as the operator schemas spell it, without shape: `tensor(float)`, `seq(tensor(int64))`.
std::string schema_name(const Type& type);
/// The type as ONNX text spells it: `float[N,3,224,224]`.
std::string to_string(const Type& type);

}  // namespace tombolo
