#pragma once

// Inferred types and values, one instance each: a chain of a million nodes of one shape holds one
// InferType, and comparing pointers compares types.

#include <memory>
#include <string>
#include <unordered_map>

#include "ops/infer_context.h"

namespace tombolo {

bool same_type(const InferType& a, const InferType& b);  ///< dims included, unknown equals unknown
bool same_kind(const InferType& a, const InferType& b);  ///< shapes left out

class TypePool {
 public:
  const InferType* intern(InferType type);
  const SymShape* intern(SymShape elements);

 private:
  std::unordered_multimap<size_t, std::unique_ptr<const InferType>> types_;
  std::unordered_multimap<size_t, std::unique_ptr<const SymShape>> values_;
};

/// Marks names of dimensions that the model leaves unnamed: they are told apart while inferring,
/// and written as unknown.
inline constexpr char kUnnamedMark = '\x01';

/// A declared type for the engine. Unknown dims stay unknown; negative ones read as unknown.
InferType from_declared(const Type& type);
/// The type and dims of a constant.
InferType from_constant(const Constant& constant);
/// For writing; dims that mention unnamed dimensions are unknown. Nested types are interned.
Type to_declared(const InferType& type, Storage& storage);

/// "tensor(float)" as schemas spell it; "?" where unknown.
std::string kind_text(const InferType& type);
/// "float[N,3]" for messages.
std::string type_text(const InferType& type);
std::string shape_text(const SymShape& shape);

/// What is known of a value from two sources.
struct Merge {
  enum class Conflict : uint8_t { kNone, kKind, kRank, kDim };
  InferType type;  ///< the more precise of the two, dim by dim
  Conflict conflict = Conflict::kNone;
  size_t axis = 0;         ///< of kDim
  bool provable = true;    ///< kDim: both are numbers; otherwise expressions that differ
  bool adds_info = false;  ///< `type` says more than `declared`
};
/// Where both know, numbers win over expressions and `inferred` over `declared`.
Merge merge_types(const InferType& declared, const InferType& inferred);

}  // namespace tombolo
