#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tombolo {

/// RFC 4648 with padding: what protobuf's JSON mapping writes for bytes.
std::string base64_encode(std::string_view bytes);

/// The bytes, or nothing if the text is not base64. As protobuf's JSON mapping asks, the standard
/// and the URL-safe alphabet are read, with or without padding. Strict in all else: no white
/// space, no stray `=`, and the unused bits of the last character are zero, so that each value
/// has one spelling in each style.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace tombolo
