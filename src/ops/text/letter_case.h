#pragma once

// Case of text, by Unicode's full mappings: no locale is asked.

#include <string>
#include <string_view>

namespace tombolo::ops {

/// UTF-8 text in upper or lower case. A letter may become several ("ß" is "SS" in upper case), and
/// a capital sigma at the end of a word becomes the final one. Bytes that are not UTF-8 stay.
std::string change_case(std::string_view text, bool upper);

}  // namespace tombolo::ops
