#pragma once

// The steps that a RUN line is made of: one row each.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/model.h"
#include "runner/part.h"

namespace tombolo::test {

struct State {
  const Part& part;
  std::unique_ptr<Model> model;
  std::string output = {};  ///< what EXPECT is compared with
  bool is_values = false;   ///< output is a list of tensors: compared with tolerance
};

struct Verb {
  std::string_view name;
  std::string_view help;
  Status (*step)(State& state, std::string_view arguments);
};

std::span<const Verb> verbs();

/// True when the list of tensors `expected` says what `actual` says, within the tolerance of their
/// types; else `reason` is set.
bool same_values(const std::string& actual, const std::string& expected, std::string& reason);

}  // namespace tombolo::test
