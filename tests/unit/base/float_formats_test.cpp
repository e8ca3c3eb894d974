// Against tables made by make_float_tables.py from ml_dtypes, numpy and an exact search.

#include "base/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "base/bit_packing.h"

namespace tombolo {
namespace {

std::ifstream table(const std::string& name) {
  return std::ifstream(TOMBOLO_SOURCE_DIR "/tests/unit/base/float_tables/" + name);
}

uint64_t hex(const std::string& text) { return std::stoull(text, nullptr, 16); }

uint32_t canonical_bits(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::isnan(x) ? (bits & 0x80000000u) | 0x7FC00000u : bits;
}

struct Fnv {
  uint64_t digest = 0xCBF29CE484222325u;
  void add(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) digest = (digest ^ (value >> 8 * i & 0xFF)) * 0x100000001B3u;
  }
};

// One code of any small format, through the scalar type.
template <typename Visit>
void with_format(DType type, Visit visit) {
  switch (type) {
    case DType::kFloat16:
      return visit(Float16{});
    case DType::kBFloat16:
      return visit(BFloat16{});
    case DType::kFloat8E4M3FN:
      return visit(Float8E4M3FN{});
    case DType::kFloat8E4M3FNUZ:
      return visit(Float8E4M3FNUZ{});
    case DType::kFloat8E5M2:
      return visit(Float8E5M2{});
    case DType::kFloat8E5M2FNUZ:
      return visit(Float8E5M2FNUZ{});
    case DType::kFloat4E2M1:
      return visit(Float4E2M1{});
    case DType::kFloat6E2M3:
      return visit(Float6E2M3{});
    case DType::kFloat6E3M2:
      return visit(Float6E3M2{});
    default:
      FAIL() << name_of(type);
  }
}

float decode_scalar(DType type, uint16_t code) {
  if (type == DType::kFloat8E8M0) return Float8E8M0::from_bits(static_cast<uint8_t>(code));
  float value = 0;
  with_format(type,
              [&]<typename M>(M) { value = M::from_bits(static_cast<typename M::Bits>(code)); });
  return value;
}

template <typename T>
uint32_t encode_scalar(DType type, T x, bool saturate) {
  uint32_t code = 0;
  with_format(type, [&]<typename M>(M) { code = M::from(x, saturate).bits; });
  return code;
}

// The same through the bulk functions, at an odd address and behind another element.
template <typename T>
uint32_t encode_bulk(DType type, T x, CastOptions options) {
  const T in[2] = {T{1}, x};
  uint8_t out[1 + 4] = {};
  EXPECT_TRUE(encode_floats(type, in, 2, out + 1, options));
  if (bits_of(type) == 16) return out[3] | out[4] << 8;
  return packed_code(out + 1, bits_of(type), 1);
}

TEST(FloatFormats, EveryCodeOfEightBitsAndFewerDecodes) {
  auto file = table("decode.txt");
  std::string line, name, bits;
  int formats = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> name;
    const auto type = dtype_from_name(name);
    ASSERT_TRUE(type) << name;
    std::vector<uint8_t> codes;
    std::vector<uint32_t> expected;
    while (words >> bits) {
      codes.push_back(static_cast<uint8_t>(codes.size()));
      expected.push_back(static_cast<uint32_t>(hex(bits)));
    }
    ASSERT_EQ(codes.size(), size_t{1} << bits_of(*type));
    std::vector<uint8_t> packed(*packed_bytes(*type, codes.size()));
    pack_codes(codes.data(), bits_of(*type), codes.size(), packed.data());
    std::vector<float> bulk(codes.size());
    ASSERT_TRUE(decode_floats(*type, packed.data(), codes.size(), bulk.data()));
    for (size_t i = 0; i < codes.size(); ++i) {
      EXPECT_EQ(canonical_bits(decode_scalar(*type, codes[i])), expected[i]) << name << " " << i;
      EXPECT_EQ(canonical_bits(bulk[i]), expected[i]) << name << " " << i;
    }
    ++formats;
  }
  EXPECT_EQ(formats, 8);
}

TEST(FloatFormats, EncodingAroundEveryRoundingBoundary) {
  auto file = table("encode.txt");
  std::string name, kind, bits, plain, saturated;
  size_t rows = 0;
  while (file >> name >> kind >> bits >> plain >> saturated) {
    const auto type = dtype_from_name(name);
    ASSERT_TRUE(type) << name;
    const auto check = [&](auto x) {
      EXPECT_EQ(encode_scalar(*type, x, false), hex(plain)) << name << " " << x;
      EXPECT_EQ(encode_scalar(*type, x, true), hex(saturated)) << name << " " << x;
      EXPECT_EQ(encode_bulk(*type, x, {.saturate = false}), hex(plain)) << name << " " << x;
      EXPECT_EQ(encode_bulk(*type, x, {.saturate = true}), hex(saturated)) << name << " " << x;
    };
    kind == "f" ? check(std::bit_cast<float>(static_cast<uint32_t>(hex(bits))))
                : check(std::bit_cast<double>(hex(bits)));
    ++rows;
  }
  EXPECT_GT(rows, 9000u);
}

TEST(FloatFormats, E8M0RoundsAsTheCastSpecificationSays) {
  auto file = table("e8m0.txt");
  std::string mode, saturate, kind, bits, code;
  size_t rows = 0;
  while (file >> mode >> saturate >> kind >> bits >> code) {
    const CastOptions options{.saturate = saturate == "1",
                              .round_mode = mode == "up"     ? RoundMode::kUp
                                            : mode == "down" ? RoundMode::kDown
                                                             : RoundMode::kNearest};
    const auto check = [&](auto x) {
      const auto scalar = Float8E8M0::from(x, options.saturate, options.round_mode);
      EXPECT_EQ(scalar.bits, hex(code)) << mode << saturate << " " << x;
      EXPECT_EQ(encode_bulk(DType::kFloat8E8M0, x, options), hex(code)) << mode << saturate << x;
    };
    kind == "f" ? check(std::bit_cast<float>(static_cast<uint32_t>(hex(bits))))
                : check(std::bit_cast<double>(hex(bits)));
    ++rows;
  }
  EXPECT_GT(rows, 1500u);
}

// All 65,536 codes of both 16-bit formats, and four inputs around each rounding boundary.
template <typename M, typename T>
uint64_t digest_of_encodings(DType type, int block) {
  Fnv digest;
  std::vector<T> inputs;
  for (int code = block * 256; code < std::min(block * 256 + 256, 65535); ++code) {
    const auto a = double{M::from_bits(static_cast<uint16_t>(code))};
    const auto b = double{M::from_bits(static_cast<uint16_t>(code + 1))};
    if (!std::isfinite(a) || !std::isfinite(b) || (a == 0 && b == 0)) continue;
    const auto middle = static_cast<T>((a + b) / 2);
    inputs.insert(inputs.end(), {static_cast<T>(a), std::nextafter(middle, static_cast<T>(a)),
                                 middle, std::nextafter(middle, static_cast<T>(b))});
  }
  std::vector<uint16_t> bulk(inputs.size());
  EXPECT_TRUE(encode_floats(type, inputs.data(), inputs.size(), bulk.data(), {}));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint16_t code = M(inputs[i]).bits;
    EXPECT_EQ(bulk[i], code) << name_of(type) << " " << inputs[i];
    digest.add(code, 2);
  }
  return digest.digest;
}

TEST(FloatFormats, EverySixteenBitCodeAndBoundary) {
  auto file = table("blocks16.txt");
  std::string name, block, decoded, from_float, from_double;
  int blocks = 0;
  while (file >> name >> block >> decoded >> from_float >> from_double) {
    const auto type = dtype_from_name(name);
    ASSERT_TRUE(type) << name;
    const int b = static_cast<int>(hex(block));
    uint16_t codes[256];
    float bulk[256];
    for (int i = 0; i < 256; ++i) codes[i] = static_cast<uint16_t>(b * 256 + i);
    ASSERT_TRUE(decode_floats(*type, codes, 256, bulk));
    Fnv scalar_digest, bulk_digest;
    for (int i = 0; i < 256; ++i) {
      scalar_digest.add(canonical_bits(decode_scalar(*type, codes[i])), 4);
      bulk_digest.add(canonical_bits(bulk[i]), 4);
    }
    EXPECT_EQ(scalar_digest.digest, hex(decoded)) << name << " block " << block;
    EXPECT_EQ(bulk_digest.digest, hex(decoded)) << name << " block " << block;
    with_format(*type, [&]<typename M>(M) {
      if constexpr (sizeof(M) == 2) {
        EXPECT_EQ((digest_of_encodings<M, float>(*type, b)), hex(from_float)) << name << block;
        EXPECT_EQ((digest_of_encodings<M, double>(*type, b)), hex(from_double)) << name << block;
      }
    });
    ++blocks;
  }
  EXPECT_EQ(blocks, 512);
}

// The bulk loops for f16 and bf16 are separate code: compare them with the scalar type on floats
// spread over all bit patterns.
TEST(FloatFormats, BulkEqualsScalarOverAllFloats) {
  for (const auto type : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<float> in;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65521) {
      in.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    std::vector<uint16_t> out(in.size());
    ASSERT_TRUE(encode_floats(type, in.data(), in.size(), out.data()));
    for (size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(out[i], encode_scalar(type, in[i], false)) << name_of(type) << " " << in[i];
    }
  }
}

TEST(FloatFormats, SixteenBitOverflowInfinityAndNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Float16(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(Float16(65519.99).bits, 0x7BFF);
  EXPECT_EQ(Float16(65520.0).bits, 0x7C00);
  EXPECT_EQ(Float16(-1e300).bits, 0xFC00);
  EXPECT_EQ(Float16(inf).bits, 0x7C00);
  EXPECT_EQ(Float16(nan).bits, 0x7E00);
  EXPECT_EQ(Float16(-nan).bits, 0xFE00);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(BFloat16(nan).bits, 0x7FC0);
  EXPECT_EQ(BFloat16(-inf).bits, 0xFF80);
  EXPECT_EQ(Float16::from(1e9, true).bits, 0x7BFF);
}

// Through float, 2^54 + 2^46 + 1 would land on bfloat16's midpoint and tie downwards.
TEST(FloatFormats, IntegersRoundOnce) {
  const int64_t value = (int64_t{1} << 54) + (int64_t{1} << 46) + 1;
  EXPECT_EQ(float{BFloat16(value)}, std::ldexp(1.0f, 54) + std::ldexp(1.0f, 47));
  EXPECT_EQ(float{BFloat16(-value)}, -std::ldexp(1.0f, 54) - std::ldexp(1.0f, 47));
  EXPECT_EQ(float{BFloat16(INT64_MIN)}, -std::ldexp(1.0f, 63));
  EXPECT_EQ(float{BFloat16(UINT64_MAX)}, std::ldexp(1.0f, 64));
  EXPECT_EQ(float{Float16(true)}, 1.0f);
  EXPECT_EQ(float{Float8E4M3FN(-300)}, -288.0f);
}

static_assert(float{Float16(1.5f)} == 1.5f);
static_assert(float{Float8E4M3FN::max()} == 448.0f);
static_assert(float{Float8E4M3FNUZ::max()} == 240.0f);
static_assert(float{Float8E5M2::max()} == 57344.0f);
static_assert(float{Float6E2M3::max()} == 7.5f);
static_assert(float{Float6E3M2::max()} == 28.0f);
static_assert(float{Float4E2M1::lowest()} == -6.0f);

TEST(FloatFormats, BulkRefusesOtherTypes) {
  float x = 0;
  uint8_t bytes[16] = {};
  const double d = 0;
  for (const auto type : {DType::kFloat64, DType::kInt8, DType::kString, DType::kUndefined}) {
    EXPECT_FALSE(decode_floats(type, bytes, 1, &x));
    EXPECT_FALSE(encode_floats(type, &x, 1, bytes));
    EXPECT_FALSE(encode_floats(type, &d, 1, bytes));
  }
}

}  // namespace
}  // namespace tombolo
