#pragma once

// The checker: is this a valid ONNX model? All diagnostics, not the first (rules.inc lists them).

#include "base/diagnostic.h"
#include "ir/model.h"

namespace tombolo {

struct CheckOptions {
  bool infer = true;       ///< types and shapes of every node too
  bool checksums = false;  ///< compare external data with their SHA-1
};

/// A model is valid when `diagnostics` has no errors afterwards.
void check(const Model& model, const CheckOptions& options, Diagnostics& diagnostics);

}  // namespace tombolo
