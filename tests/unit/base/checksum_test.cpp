#include "base/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace tombolo {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// FIPS 180-4 example values (NIST CAVP), and a million times "a".
TEST(Sha1, KnownVectors) {
  EXPECT_EQ(Sha1::of({}), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Sha1::of(bytes("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Sha1::of(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(Sha1::of(bytes(std::string(1000000, 'a'))), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

// hashlib.sha1(b"".join(hashlib.sha1(bytes(range(n))).digest() for n in range(200))): every length
// around the block and padding boundaries at once.
TEST(Sha1, EveryLengthAndEverySplit) {
  std::string text, digests;
  for (int n = 0; n < 200; ++n) {
    const std::string whole = Sha1::of(bytes(text));
    for (size_t i = 0; i < 40; i += 2) {
      digests += static_cast<char>(std::stoi(whole.substr(i, 2), nullptr, 16));
    }
    Sha1 parts;
    const size_t split = static_cast<size_t>(n) * 7 % (text.size() + 1);
    parts.update(bytes(text).first(split));
    parts.update(bytes(text).subspan(split));
    EXPECT_EQ(parts.finish(), whole);
    text += static_cast<char>(n);
  }
  EXPECT_EQ(Sha1::of(bytes(digests)), "ab05664693b2d32b84dd4616c5284c285cc0684a");
}

}  // namespace
}  // namespace tombolo
