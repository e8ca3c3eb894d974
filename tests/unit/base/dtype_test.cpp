#include "base/dtype.h"

#include <gtest/gtest.h>

namespace tombolo {
namespace {

TEST(DType, NamesGoBothWays) {
  for (size_t i = 1; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(type)), type);
    EXPECT_EQ(dtype_from_user_name(numpy_name_of(type)), type);
    EXPECT_EQ(dtype_from_number(static_cast<int64_t>(i)), type);
  }
  EXPECT_EQ(dtype_from_name("undefined"), std::nullopt);
  EXPECT_EQ(dtype_from_name("float32"), std::nullopt);
  EXPECT_EQ(dtype_from_user_name("float32"), DType::kFloat32);
  EXPECT_EQ(dtype_from_number(0), std::nullopt);
  EXPECT_EQ(dtype_from_number(29), std::nullopt);
  EXPECT_EQ(dtype_from_number(-1), std::nullopt);
  EXPECT_EQ(name_of(static_cast<DType>(200)), "undefined");
}

// A number of every group, so that a row that slips by one is seen.
TEST(DType, RowsSitAtTheirNumbers) {
  EXPECT_EQ(name_of(DType::kFloat32), "float");
  EXPECT_EQ(name_of(DType::kBool), "bool");
  EXPECT_EQ(name_of(DType::kFloat64), "double");
  EXPECT_EQ(name_of(DType::kComplex128), "complex128");
  EXPECT_EQ(name_of(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(name_of(DType::kFloat8E5M2FNUZ), "float8e5m2fnuz");
  EXPECT_EQ(name_of(DType::kFloat8E8M0), "float8e8m0");
  EXPECT_EQ(name_of(DType::kInt2), "int2");
  EXPECT_EQ(name_of(DType::kFloat6E3M2), "float6e3m2");
}

TEST(DType, Classes) {
  EXPECT_TRUE(is_float(DType::kFloat4E2M1));
  EXPECT_TRUE(is_float8(DType::kFloat8E8M0));
  EXPECT_FALSE(is_float8(DType::kUInt8));
  EXPECT_TRUE(is_integer(DType::kInt4));
  EXPECT_FALSE(is_integer(DType::kBool));
  EXPECT_TRUE(is_sub_byte(DType::kFloat6E2M3));
  EXPECT_FALSE(is_sub_byte(DType::kString));
  EXPECT_EQ(bytes_of(DType::kComplex128), 16u);
}

TEST(DType, PackedBytesRoundsUpOnceAndChecksOverflow) {
  EXPECT_EQ(packed_bytes(DType::kFloat32, 3), 12u);
  EXPECT_EQ(packed_bytes(DType::kInt4, 0), 0u);
  EXPECT_EQ(packed_bytes(DType::kInt4, 3), 2u);
  EXPECT_EQ(packed_bytes(DType::kUInt2, 5), 2u);
  const uint64_t six_bit[] = {0, 1, 2, 3, 3, 4, 5, 6, 6};
  for (uint64_t n = 0; n < 9; ++n) EXPECT_EQ(packed_bytes(DType::kFloat6E2M3, n), six_bit[n]);
  EXPECT_EQ(packed_bytes(DType::kString, 1), std::nullopt);
  EXPECT_EQ(packed_bytes(DType::kUndefined, 1), std::nullopt);
  EXPECT_EQ(packed_bytes(DType::kInt8, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(packed_bytes(DType::kUInt4, UINT64_MAX), uint64_t{1} << 63);
  EXPECT_EQ(packed_bytes(DType::kFloat16, (uint64_t{1} << 63) - 1), UINT64_MAX - 1);
  EXPECT_EQ(packed_bytes(DType::kFloat16, uint64_t{1} << 63), std::nullopt);
  EXPECT_EQ(packed_bytes(DType::kComplex128, uint64_t{1} << 60), std::nullopt);
}

}  // namespace
}  // namespace tombolo
