#pragma once

// Finds operators and their versions. The tables are resolved once, at first use; after that a
// look-up hashes the name, allocates nothing and takes no lock.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ops/schema.h"

namespace tombolo {

/// An input or output as one version has it.
struct ResolvedParam {
  std::string_view name;
  std::string_view type;  ///< type variable or type string, as declared
  Option option = Option::kSingle;
  int min_arity = 1;
  bool homogeneous = true;
  int type_var = -1;  ///< index into OpVersion::types; -1 where the type is fixed
  TypeSet allowed;    ///< what the variable or the fixed type admits
};

struct ResolvedType {
  std::string_view name;
  TypeSet allowed;
};

/// One (operator, version) pair: the rows that hold at `since`.
struct OpVersion {
  const OpDecl* decl = nullptr;
  int since = 1;     ///< the operator set that brought this version
  int until = 9999;  ///< the last one at which it is the version in force
  bool deprecated = false;
  std::span<const ResolvedParam> inputs, outputs;
  std::span<const AttrDecl* const> attributes;
  std::span<const ResolvedType> types;
  std::span<const FunctionBody* const> functions;  ///< more than one: written in several opsets
  size_t min_inputs = 0, max_inputs = 0;           ///< SIZE_MAX: no limit
  size_t min_outputs = 0, max_outputs = 0;

  bool has_function() const { return !functions.empty(); }
  /// The attribute of this name, or null.
  const AttrDecl* attribute(std::string_view name) const;
};

/// All declared operators, sorted by domain and name.
std::span<const OpDecl* const> all_operators();

/// All (operator, version) pairs, sorted by domain, name and version.
std::span<const OpVersion> all_versions();

/// Where the rows of operators stand that models use in ai.onnx though no released set has them:
/// experiments of the first releases, and SimplifiedLayerNormalization, which ONNX Runtime added.
inline constexpr std::string_view kGuestDomain = "ai.onnx.experimental";

/// The operator, or null. The domains "" and "ai.onnx" are the same; an operator that they lack is
/// sought in kGuestDomain.
const OpDecl* find_operator(std::string_view domain, std::string_view name);

/// Its versions, oldest first.
std::span<const OpVersion> versions_of(const OpDecl& op);

/// The version of `op` in force at this operator set, or null if it came later.
const OpVersion* resolve(const OpDecl& op, int opset);

/// find_operator and resolve in one: null for an unknown operator and for one that came later.
const OpVersion* find_version(std::string_view domain, std::string_view name, int opset);

/// The newest operator set known of a domain; 0 for a domain that ONNX does not define.
int latest_opset(std::string_view domain);

/// The lowest IR version that may carry this ai.onnx operator set (table of releases in the ONNX
/// repository's docs/Versioning.md); the newest known one beyond the table.
int ir_version_for_opset(int opset);

/// The newest ai.onnx operator set released with this IR version, or 0 for an unknown version.
int opset_for_ir_version(int ir_version);

/// The members as type strings of the official schemas: "tensor(float)", "seq(tensor(bool))".
std::vector<std::string> type_strings(TypeSet set);

/// The one member that a type string names, or nothing if no operator can have it.
std::optional<TypeSet> type_set_of(std::string_view type_string);

}  // namespace tombolo
