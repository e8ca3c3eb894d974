#include "analysis/place.h"

namespace tombolo {

std::string quote_name(Text name) {
  constexpr size_t kLongest = 120;
  std::string out = "\"";
  for (const char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  if (name.size() > kLongest) out += "...";
  return out + "\"";
}

std::string to_string(const Place& place) {
  std::string text = place.outer != nullptr ? to_string(*place.outer) + " > " : std::string();
  switch (place.kind) {
    case Place::Kind::kText:
      return text + std::string(place.word);
    case Place::Kind::kNamed:
      return text + std::string(place.word) + " " + quote_name(place.name);
    case Place::Kind::kNode: {
      text += "node ";
      const std::string op = place.node->domain().empty() || place.node->domain() == "ai.onnx"
                                 ? std::string(place.node->op_type().substr(0, 120))
                                 : std::string(place.node->domain().substr(0, 120)) + "." +
                                       std::string(place.node->op_type().substr(0, 120));
      if (!place.node->name().empty()) text += quote_name(place.node->name()) + " ";
      return text + "(" + op + ", #" + std::to_string(place.index) + ")";
    }
  }
  return text;
}

}  // namespace tombolo
