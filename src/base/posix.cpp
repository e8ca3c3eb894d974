#include "base/posix.h"

#include <system_error>

namespace tombolo {

std::string errno_text(int error) { return std::generic_category().message(error); }

std::string quoted(std::string_view text) {
  constexpr size_t limit = 300;
  constexpr char digits[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      result += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  if (text.size() > limit) result += "...";
  return result + "\"";
}

}  // namespace tombolo
