#pragma once

// Comparing what a run gave with what was expected.

#include <string>

#include "ir/run_value.h"

namespace tombolo {

/// |actual - expected| <= atol + rtol * |expected|, NaN equal to NaN, infinities by sign.
struct Tolerance {
  double rtol = 0, atol = 0;
};

/// The official tolerance (rtol 1e-3, atol 1e-7) for float and double; as wide as the type's own
/// rounding asks for the narrower floats; zero for integers, bool and strings.
Tolerance default_tolerance(DType dtype);

struct Comparison {
  bool equal = true;
  double max_abs = 0;  ///< largest absolute difference of finite elements
  std::string reason;  ///< the first difference, when not equal
};

/// Kind, element type, shape and elements. `override` replaces the tolerance of floats.
Comparison compare(const RunValue& actual, const RunValue& expected,
                   const Tolerance* override_floats = nullptr);

}  // namespace tombolo
