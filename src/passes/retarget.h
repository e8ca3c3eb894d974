#pragma once

#include <memory>
#include <span>

#include "version/upgrade.h"

namespace tombolo {

/// convert() for those who want the operator sets and nothing else. Functions of the model whose
/// bodies cannot be said there apart from their calls are inlined. kUnsupported names every node
/// that is in the way, and the lowest operator set that would do.
Result<Conversion> retarget(std::unique_ptr<Model>& model, std::span<const OpsetTarget> targets);

}  // namespace tombolo
