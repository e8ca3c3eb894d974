#pragma once

#include <string>
#include <string_view>

namespace tombolo {

/// `text` as a JSON string, quotes included. JSON must be UTF-8, names in models may hold any
/// bytes: what is not UTF-8 becomes U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace tombolo
