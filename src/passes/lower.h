#pragma once

// The operator sets of a result. Passes work on the newest ones; a file that others run should ask
// for no more than it needs: this takes the imports back as far as every node means the same there,
// without rewriting any of them.

#include <vector>

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

struct OriginalImports {
  int64_t ir_version = 0;
  std::vector<OpsetImport> imports;
};
OriginalImports remember_imports(const Model& model);

/// The lowest operator sets, not below the original ones, at which each node says what it says now.
/// kUnsupported when nodes that kept an old version and new ones need different sets.
Status lower(Model& model, const OriginalImports& original);

}  // namespace tombolo
