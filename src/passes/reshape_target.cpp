#include "passes/reshape_target.h"

#include <algorithm>

namespace tombolo::passes {

std::optional<std::vector<int64_t>> reshape_target(const SymShape& source, const SymShape& target) {
  std::vector<int64_t> out;
  std::optional<size_t> open;
  bool positive = true, zero = false;
  for (size_t i = 0; i < target.size(); ++i) {
    const SymDim& dim = target[i];
    if (dim.is_value()) {
      out.push_back(dim.value());
      if (dim.value() < 0) return std::nullopt;
      zero |= dim.value() == 0;
      continue;
    }
    if (i < source.size() && dim.equals(source[i])) {
      out.push_back(0);
      positive &= dim.lower_bound().value_or(0) >= 1;
      continue;
    }
    if (open) return std::nullopt;
    open = i;
    out.push_back(-1);
  }
  if (zero) {
    // A length of 0 must be said with allowzero, which turns copying off.
    for (const SymDim& dim : target)
      if (!dim.is_value()) return std::nullopt;
  }
  if (open && (!positive || zero)) return std::nullopt;
  return out;
}

Node* add_reshape(Rewriter& rewriter, Node& before, Value* input, const SymShape& from,
                  const SymShape& to, Text hint) {
  const auto target = reshape_target(from, to);
  if (!target) return nullptr;
  Value* shape = rewriter.ints_initializer(before.graph(), *target, "shape");
  Node& node = rewriter.add(before, "Reshape", {input, shape}, hint);
  const bool lengths =
      std::all_of(to.begin(), to.end(), [](const SymDim& dim) { return dim.is_value(); });
  if (lengths && std::count(target->begin(), target->end(), 0) != 0) node.set_int("allowzero", 1);
  rewriter.touch(node);
  return &node;
}

}  // namespace tombolo::passes
