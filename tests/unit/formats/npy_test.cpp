#include "formats/common/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/mapped_file.h"

namespace tombolo {
namespace {

/// A .npy file of version 1 with this header dict and these data.
std::string npy(std::string dict, std::string_view data) {
  dict += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dict.size() & 0xFF);
  bytes += static_cast<char>(dict.size() >> 8);
  return bytes + dict + std::string(data);
}

template <typename T>
std::string raw(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

Result<Tensor> read(const std::string& bytes) {
  MappedFile file = MappedFile::from_memory(bytes, "test");
  return read_npy(file.text(), file.owner());
}

TEST(Npy, TransposesFortranOrder) {
  auto tensor = read(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }",
                         raw<int32_t>({1, 4, 2, 5, 3, 6})));
  ASSERT_TRUE(tensor) << tensor.error().message;
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensor->get_int64(i), i + 1);
}

TEST(Npy, SwapsBigEndian) {
  auto tensor = read(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }",
                         std::string("\x01\x02\xFF\xFE", 4)));
  ASSERT_TRUE(tensor) << tensor.error().message;
  EXPECT_EQ(tensor->get_int64(0), 0x0102);
  EXPECT_EQ(tensor->get_int64(1), -2);
}

TEST(Npy, ReadsFixedWidthText) {
  auto tensor = read(npy("{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
                         raw<uint32_t>({'a', 0, 0xE9, 0x1F600})));
  ASSERT_TRUE(tensor) << tensor.error().message;
  EXPECT_EQ(tensor->strings()[0], "a");
  EXPECT_EQ(tensor->strings()[1], "\xC3\xA9\xF0\x9F\x98\x80");
}

TEST(Npy, RefusesWhatItCannotHold) {
  EXPECT_EQ(read(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "x")).error().kind,
            ErrorKind::kUnsupported);
  EXPECT_FALSE(read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }", "1234")));
  EXPECT_FALSE(read(npy(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "1234")));
  EXPECT_FALSE(
      read(npy("{'descr': '<U0', 'fortran_order': False, 'shape': (99999999999,), }", "")));
}

TEST(Npy, TruncationAtEveryByteIsAnErrorOrATensor) {
  const std::string whole =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", raw<float>({1, 2, 3}));
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read(whole.substr(0, size)));
}

TEST(Npz, CarriesTheTypesThatNumpyLacks) {
  const int64_t dims[] = {3};
  auto int4 = Tensor::allocate(DType::kInt4, dims);
  auto bf16 = Tensor::allocate(DType::kBFloat16, dims);
  ASSERT_TRUE(int4 && bf16);
  for (int64_t i = 0; i < 3; ++i) {
    int4->set_int64(i, i - 2);
    bf16->set_double(i, 0.5 * static_cast<double>(i));
  }
  const std::string path = testing::TempDir() + "/carried.npz";
  auto file = OutputFile::create(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(write_npz({{"a.b", *int4}, {"c", *bf16}}, *file));
  ASSERT_TRUE(file->commit());
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped);
  auto back = read_npz(*mapped);
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].name, "a.b");
  EXPECT_TRUE((*back)[0].tensor == *int4);
  EXPECT_TRUE((*back)[1].tensor == *bf16);
}

}  // namespace
}  // namespace tombolo
