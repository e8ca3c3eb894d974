#pragma once

// Official conformance cases whose recorded output cannot be what an implementation gives: each a
// row with its reason and the evidence. They are run all the same; types and shapes must agree.

#include <string_view>

namespace tombolo::cli {

struct ExcludedCase {
  std::string_view path;      ///< the last parts of the case's folder
  std::string_view reason;    ///< what is wrong with the record
  std::string_view evidence;  ///< how one can see it
  bool runs = true;           ///< false: the model refuses the recorded inputs
};

/// The row of this case, or null.
const ExcludedCase* find_excluded_case(std::string_view folder);

}  // namespace tombolo::cli
