#pragma once

// The signature of an operator overload as PyTorch writes it:
//   "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
// Names and defaults of arguments come from here; so does the choice among overloads where the
// source names none.

#include <string>
#include <string_view>
#include <vector>

#include "formats/pytorch/aten/arg.h"

namespace tombolo::pytorch {

struct SchemaArg {
  std::string_view name;
  std::string_view type;  ///< "Tensor", "SymInt[]", "Tensor?[]": alias marks and lengths left out
  int list_length = 0;    ///< of "int[2]": one number stands for all
  bool keyword = false;   ///< after the star
  bool mutated = false;   ///< Tensor(a!)
  bool required = true;
  Arg fallback;
  bool optional() const { return !type.empty() && type.back() == '?'; }
};

struct Schema {
  std::string_view name;  ///< "add.Tensor", or "torchvision::nms"
  std::vector<SchemaArg> args;
  std::vector<std::string_view> results;  ///< their types
  /// The position of an argument, or -1.
  int find(std::string_view arg) const;
};

/// Parses text that lives for ever (it is a literal of a table).
Schema parse_schema(std::string_view text);

}  // namespace tombolo::pytorch
