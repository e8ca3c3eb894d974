#include "base/json_quote.h"

#include <cstdio>

namespace tombolo {

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      // Names in models may hold any bytes; JSON must be UTF-8. What is not, becomes U+FFFD.
      const size_t length = c >= 0xF0 && c < 0xF5 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 0;
      bool valid = length != 0 && c < 0xF5 && i + length <= text.size();
      for (size_t k = 1; valid && k < length; ++k)
        valid = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
      if (valid) {
        const auto second = static_cast<unsigned char>(text[i + 1]);
        valid = !(c == 0xE0 && second < 0xA0) && !(c == 0xED && second > 0x9F) &&
                !(c == 0xF0 && second < 0x90) && !(c == 0xF4 && second > 0x8F);
      }
      if (valid) {
        out.append(text.substr(i, length));
        i += length - 1;
      } else {
        out += "\xEF\xBF\xBD";
      }
    }
  }
  return out + "\"";
}

}  // namespace tombolo
