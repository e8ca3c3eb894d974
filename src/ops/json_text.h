#pragma once

// Texts of literals that JSON and ONNX text share.

#include <string>
#include <string_view>

#include "ops/schema.h"

namespace tombolo {

/// Items joined by commas; `print(item)` gives the text of one.
template <typename Items, typename Print>
std::string joined(const Items& items, Print print) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += ',';
    out += print(item);
  }
  return out;
}

/// The shortest text that reads back as the same float; always with a point or an exponent.
std::string number_text(float value);

/// The default of an attribute; "null" where there is none.
std::string default_text(const AttrSpec& spec);

}  // namespace tombolo
