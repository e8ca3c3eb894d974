#pragma once

// Do two models compute the same? Runs both on random inputs and compares the outputs.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/model.h"
#include "runtime/session.h"

namespace tombolo {

struct RandomInputOptions {
  uint64_t seed = 0;
  std::map<std::string, std::vector<int64_t>> dims;  ///< by input; they win over what is declared
  bool vary =
      false;  ///< unknown and named sizes differ from seed to seed (2 to 5), else they are 1
};

/// A value for every input that has no default: floats standard normal, integers 0 to 9, bools
/// fair, strings "a" to "j". A name of a dimension stands for one size.
Result<std::vector<NamedValue>> random_inputs(const Session& session,
                                              const RandomInputOptions& options);

struct Equivalence {
  bool equal = true;
  std::string difference;   ///< the first one: run, output, what differs
  double max_relative = 0;  ///< largest difference, relative to the largest value of its output
  int runs = 0;
};

/// Floats may differ by 1e-3 of their value or 1e-5 of the largest value of their output; narrower
/// floats by what their rounding explains; all else not at all. A run that fails in both models
/// counts as equal. `given` are used in every run.
Result<Equivalence> compare_models(const Session& before, const Session& after, int runs,
                                   RandomInputOptions options,
                                   const std::vector<NamedValue>& given = {});

}  // namespace tombolo
