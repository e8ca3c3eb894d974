#pragma once

// How an operator is declared: one constant-initialised table, in one place, over all versions.
// What changes between versions carries an interval of operator-set versions; nothing is copied.
//
//   OPERATOR(Squeeze) = {
//       .name = "Squeeze",
//       .doc = "removes axes of length 1",
//       .versions = {1, 11, 13, 21},
//       .inputs = {{"data", "T"}, {"axes", "tensor(int64)", kOptional, {.since = 13}}},
//       .outputs = {{"squeezed", "T"}},
//       .attributes = {{"axes", Attr::kInts, {.until = 12}}},
//       .types = {{"T", {{1, kAll}, {13, kBf16}, {21, kFp8 | kInt4}}}},
//       .infer = infer_squeeze,
//       .reference = run_squeeze,
//   };
//
// Everything here is constexpr and light: rows must compile in no time.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "ir/attr_type.h"
#include "ops/type_sets.h"

namespace tombolo {

template <typename T>
class Result;
struct Ok;
using Status = Result<Ok>;

struct InferContext;     // ops/infer_context.h
struct KernelContext;    // ops/kernel_context.h
struct StepContext;      // what a version step sees
struct FunctionContext;  // what the builder of a context-dependent function body sees

using InferFn = Status (*)(InferContext&);
using KernelFn = Status (*)(KernelContext&);
using StepFn = Status (*)(StepContext&);
/// Writes the body, as ONNX text, for the node that the context describes.
using FunctionFn = Status (*)(FunctionContext&);

/// A string literal. In place of std::string_view, with which g++ 12 does not accept these tables
/// as constants (std::char_traits::length is what it stumbles over).
struct Literal {
  const char* data = "";
  size_t size = 0;

  constexpr Literal() = default;
  constexpr Literal(const char* text) : data(text), size(__builtin_strlen(text)) {}
  constexpr operator std::string_view() const { return {data, size}; }
  constexpr bool empty() const { return size == 0; }
  constexpr bool operator==(std::string_view other) const {
    return std::string_view(*this) == other;
  }
};

/// The operator-set versions at which a row holds, both ends included.
struct Since {
  int since = 1;
  int until = 9999;
  constexpr bool holds(int version) const { return since <= version && version <= until; }
};

enum class Option : uint8_t { kSingle, kOptional, kVariadic };

/// An input or an output.
struct Param {
  Literal name;
  Literal type;  ///< a type variable of the same operator, or "tensor(int64)" and such
  Option option = Option::kSingle;
  Since versions = {};
  int min_arity = 1;        ///< of a variadic: the fewest values it takes
  bool homogeneous = true;  ///< of a variadic: its values have one type
};

/// Type and default of an attribute, whichever the row gives: `{"axis", 0}`, `{"mode", "linear"}`,
/// `{"axes", Attr::kInts}` (no default), `{"to", required(Attr::kInt)}`.
struct AttrSpec {
  AttrType type = AttrType::kUndefined;
  bool required = false;
  bool has_default = false;
  // The default, in the member that `type` says.
  int64_t i = 0;
  float f = 0;
  Literal s = {};
  std::initializer_list<int64_t> ints = {};
  std::initializer_list<Literal> strings = {};

  constexpr AttrSpec(AttrType t) : type(t) {}
  constexpr AttrSpec(int value) : type(AttrType::kInt), has_default(true), i(value) {}
  constexpr AttrSpec(float value) : type(AttrType::kFloat), has_default(true), f(value) {}
  constexpr AttrSpec(const char* text) : type(AttrType::kString), has_default(true), s(text) {}
  constexpr AttrSpec(const std::initializer_list<int64_t>* list)
      : type(AttrType::kInts), has_default(true), ints(*list) {}
  constexpr AttrSpec(const std::initializer_list<Literal>* list)
      : type(AttrType::kStrings), has_default(true), strings(*list) {}
};
constexpr AttrSpec required(AttrType type) {
  AttrSpec spec(type);
  spec.required = true;
  return spec;
}

struct AttrDecl {
  Literal name;
  AttrSpec spec;
  Since versions = {};
};

/// From version `since` on these types are allowed too.
struct TypeStep {
  int since;
  TypeSet types;
};

/// A type variable; the steps add up. Where a version took types away, a second row starts.
struct TypeVar {
  Literal name;
  std::initializer_list<TypeStep> steps;
  Since versions = {};
};

/// The operator said in other operators: as ONNX text, or by a builder where the text depends on
/// the node's attributes, input types or number of inputs. A row with neither states only that
/// the specification has a body.
struct FunctionBody {
  Since versions = {};
  int opset = 0;  ///< the operator set that the body is written in
  Literal text = {};
  FunctionFn builder = nullptr;
};

/// Rewrites a node of version `from` into the neighbouring version `to`, where meaning changed.
/// Steps that only widen types or change nothing need no row: the engine derives them.
struct VersionStep {
  int from, to;
  StepFn step;
};

/// Whether the same inputs always give the same outputs; kBySubgraph: the subgraphs decide.
enum class Determinism : uint8_t { kDeterministic, kRandom, kBySubgraph };

struct OpDecl {
  Literal name;
  Literal domain = "";  ///< "" is ai.onnx
  Literal doc;          ///< one line
  std::initializer_list<int> versions;
  std::initializer_list<int> deprecated = {};  ///< those of `versions` that say: do not use
  std::initializer_list<Param> inputs = {};
  std::initializer_list<Param> outputs = {};
  std::initializer_list<AttrDecl> attributes = {};
  std::initializer_list<TypeVar> types = {};
  std::initializer_list<FunctionBody> functions = {};
  Determinism determinism = Determinism::kDeterministic;
  InferFn infer = nullptr;
  KernelFn reference = nullptr;
  std::initializer_list<VersionStep> up = {};
  std::initializer_list<VersionStep> down = {};
};

/// Declares an operator. The build finds these lines by their start and lists them in
/// op_index.cpp (self-registration would be dropped from a static library without a word).
#define OPERATOR(Name)           \
  extern const OpDecl op_##Name; \
  constinit const OpDecl op_##Name

namespace ops {
using Attr = AttrType;
using enum Option;
inline constexpr bool kMixed = false;  ///< for Param::homogeneous
}  // namespace ops

}  // namespace tombolo
