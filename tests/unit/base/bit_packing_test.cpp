#include "base/bit_packing.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/dtype.h"

namespace tombolo {
namespace {

TEST(BitPacking, LayoutIsThatOfOnnx) {
  const uint8_t codes[] = {1, 2, 3, 0, 2};
  uint8_t packed[4] = {};
  pack_codes(codes, 2, 5, packed);
  EXPECT_EQ(packed[0], 0b00111001);
  EXPECT_EQ(packed[1], 0b00000010);
  const uint8_t nibbles[] = {0xA, 0xB, 0xFC};
  pack_codes(nibbles, 4, 3, packed);
  EXPECT_EQ(packed[0], 0xBA);
  EXPECT_EQ(packed[1], 0x0C);
  // onnx.numpy_helper packs the codes 1, 2, 3, 4 and 63 to 81 30 10 3f.
  const uint8_t sixes[] = {1, 2, 3, 4, 63};
  pack_codes(sixes, 6, 5, packed);
  EXPECT_EQ(packed[0], 0x81);
  EXPECT_EQ(packed[1], 0x30);
  EXPECT_EQ(packed[2], 0x10);
  EXPECT_EQ(packed[3], 0x3F);
}

// The vectors have exactly packed_bytes bytes: a sanitizer sees any access beyond them.
TEST(BitPacking, EveryWidthAndLengthComesBack) {
  for (const auto type : {DType::kUInt2, DType::kUInt4, DType::kFloat6E2M3, DType::kUInt8}) {
    const unsigned bits = bits_of(type);
    for (size_t count = 0; count < 70; ++count) {
      std::vector<uint8_t> codes(count);
      for (size_t i = 0; i < count; ++i) codes[i] = static_cast<uint8_t>(i * 37 + 11);
      std::vector<uint8_t> packed(*packed_bytes(type, count), 0xFF);
      pack_codes(codes.data(), bits, count, packed.data());
      std::vector<uint8_t> back(count);
      unpack_codes(packed.data(), bits, count, back.data());
      std::vector<uint8_t> one_by_one(packed.size(), 0xFF);
      if (count * bits % 8 != 0) one_by_one.back() = 0;  // only packing clears the unused bits
      for (size_t i = 0; i < count; ++i) {
        const auto code = static_cast<uint8_t>(codes[i] & ((1u << bits) - 1));
        EXPECT_EQ(back[i], code);
        EXPECT_EQ(packed_code(packed.data(), bits, i), code);
        set_packed_code(one_by_one.data(), bits, i, codes[i]);
      }
      EXPECT_EQ(one_by_one, packed) << bits << " bits, " << count;
    }
  }
}

TEST(BitPacking, SettingLeavesNeighbours) {
  uint8_t packed[] = {0xFF, 0xFF, 0xFF};
  set_packed_code(packed, 6, 1, 0);
  EXPECT_EQ(packed_code(packed, 6, 0), 63);
  EXPECT_EQ(packed_code(packed, 6, 1), 0);
  EXPECT_EQ(packed_code(packed, 6, 2), 63);
  EXPECT_EQ(packed_code(packed, 6, 3), 63);
}

TEST(BitPacking, SignedValues) {
  const uint8_t packed[] = {0x87, 0x0F};
  int8_t values[3];
  unpack_signed(packed, 4, 3, values);
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(values[1], -8);
  EXPECT_EQ(values[2], -1);
  EXPECT_EQ(sign_extend(2, 2), -2);
  EXPECT_EQ(sign_extend(1, 2), 1);
}

}  // namespace
}  // namespace tombolo
