#pragma once

#include <string>

namespace tombolo {

/// One JSON document with a record per (operator, version): what `tombolo ops --json` prints.
/// Type strings, option and attribute type names are those of the official onnx package.
std::string operators_json();

}  // namespace tombolo
