#include "base/base64.h"

#include <gtest/gtest.h>

namespace tombolo {
namespace {

TEST(Base64, Rfc4648Vectors) {
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [plain, text] : vectors) {
    EXPECT_EQ(base64_encode(plain), text);
    EXPECT_EQ(base64_decode(text), plain);
  }
}

TEST(Base64, EveryByteComesBackWithAndWithoutPadding) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    std::string text = base64_encode(bytes);
    EXPECT_EQ(base64_decode(text), bytes);
    for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
    while (text.ends_with('=')) text.pop_back();
    EXPECT_EQ(base64_decode(text), bytes);
    bytes += static_cast<char>(i * 151);
  }
}

TEST(Base64, RefusesWhatIsNotBase64) {
  for (const char* text : {"Z", "Zg=", "Zg===", "=", "==", "====", "Zg==Zg==", "Zm9v=", "Zm9v====",
                           "Zm 9v", "Zm9v\n", "Zm9*", "Zh==", "Zm9=", "Z===", "Zm8=x"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tombolo
