#pragma once

// Takes a model down to older operator sets. A node goes down one version of its operator at a
// time: by the step that the operator declares (OpDecl::down), as it is where the older version
// says the same, else by what replaces it: casts around an element type that was not allowed yet,
// or the body that the specification gives the operator. What nothing says is reported with the
// lowest operator set that does.

#include <span>

#include "base/diagnostic.h"
#include "base/result.h"
#include "ir/model.h"
#include "version/upgrade.h"

namespace tombolo {

/// convert() for targets below the imports of the model or of its functions. Domains that stand
/// at or below their target are left alone.
Result<Conversion> downgrade(Model& model, std::span<const OpsetTarget> targets,
                             Diagnostics& diagnostics);

/// The lowest IR version in which the model can be said.
int64_t least_ir_version(const Model& model);

}  // namespace tombolo
