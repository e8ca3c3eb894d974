#pragma once

// Checking external data without using them. SPEC ExternalData.md.

#include "base/diagnostic.h"
#include "ir/model.h"

namespace tombolo {

/// Reports every external tensor of `model` whose data cannot be used: entries missing or not
/// numbers, a location that leaves the model's folder or does not exist, a range beyond the file, a
/// length that does not fit shape and type ("external-data"); and, if `checksum`, files whose SHA-1
/// is not the one that the model names ("external-checksum"): that reads them whole.
void verify_external(const Model& model, Diagnostics& diagnostics, bool checksum);

}  // namespace tombolo
