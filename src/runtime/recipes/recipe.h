#pragma once

// Recipes: for every operator a smallest model that uses it, with type variables in place of types.
// A probe builds the model for one type of one variable, runs it, and holds the result to the same
// model in double (or int64). `tombolo ops --coverage` runs them all; random graphs grow from them.
//
//   NAME... [SINCE-UNTIL]: (inputs) => (outputs) { nodes } | option | option
//
// NAME is an operator's, or DOMAIN.NAME where another domain has that name too. The text is ONNX
// text. OP stands for the operator's name, $T[2,3] for a value of the type that the variable T has
// (of rank 0 for $T[], of any shape for $T), $S:[2] for a tensor of its element type, #T for the
// number of the element type, ^T for its name in capitals, [[T string: a // b]] for a where T's
// type has that word, else b. Options: `x = 1 2` gives the elements of input x (repeated as
// needed), `@value = T 1 2` a tensor attribute of the node, `T1 = int8` the type of a variable that
// another probe varies, `T1 = T2` the same element type as T2 (`~T2`: a string where T2 is none,
// and the reverse), `positive` keeps inputs above 0, `text` writes numbers into strings,
// `unchecked` runs without comparing
// (`unchecked bool`: for that type).

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ir/run_value.h"
#include "ops/registry.h"
#include "runtime/session.h"

namespace tombolo {

/// One member of a TypeSet.
struct ValueType {
  enum class Kind : uint8_t { kTensor, kSequence, kOptional, kOptionalSequence, kMap };
  Kind kind = Kind::kTensor;
  DType dtype = DType::kUndefined;
  int map = 0;  ///< row of kMapTypes

  bool operator==(const ValueType&) const = default;
  std::string schema_text() const;                ///< "seq(tensor(float))"
  std::string text(std::string_view dims) const;  ///< ONNX text: "seq(float[2])"
};
std::vector<ValueType> members_of(TypeSet set);

/// A type for each of the version's type variables.
using TypeAssignment = std::vector<ValueType>;

struct Recipe {
  int since = 1, until = 9999;
  std::string_view text, options;
};

/// The recipe of this version, or null.
const Recipe* find_recipe(const OpVersion& version);

bool recipe_flag(const Recipe& recipe, std::string_view flag);
/// Whether the recipe mentions the type variable.
bool recipe_uses(const OpVersion& version, const Recipe& recipe, size_t variable);

/// The types of all variables when `variable` has `type`.
TypeAssignment assign_types(const OpVersion& version, const Recipe& recipe, size_t variable,
                            ValueType type);

/// The model as ONNX text.
std::string recipe_text(const OpVersion& version, const Recipe& recipe,
                        const TypeAssignment& types);

struct RecipeRun {
  std::unique_ptr<Session> session;
  std::vector<NamedValue> inputs;
};
/// The model ready to run, with its inputs. Where `like` is given, inputs take its numbers.
Result<RecipeRun> open_recipe(const OpVersion& version, const Recipe& recipe,
                              const TypeAssignment& types,
                              const std::vector<NamedValue>* like = nullptr);

struct ProbeResult {
  bool runs = false;
  bool checked = false;  ///< compared with the run in the wide type
  std::string reason;    ///< why it does not run, or how it differs
};
/// Runs the recipe of `version` with `variable` of this type.
ProbeResult probe(const OpVersion& version, size_t variable, ValueType type);

}  // namespace tombolo
