#include "formats/common/hdf5_file.h"

#include <gtest/gtest.h>

#include <random>

#include "base/mapped_file.h"

namespace tombolo {
namespace {

std::string data(const std::string& name) {
  return std::string(TOMBOLO_SOURCE_DIR) + "/tests/unit/formats/data/" + name;
}

std::unique_ptr<Hdf5File> open_hdf5(const std::string& path) {
  auto file = MappedFile::open(path);
  EXPECT_TRUE(file.ok()) << path;
  auto result = Hdf5File::open(file->bytes(), file->owner());
  EXPECT_TRUE(result.ok()) << path << ": " << result.error().message;
  return *std::move(result);
}

void expect_count(Hdf5File& file, const std::string& path, DType dtype,
                  const std::vector<int64_t>& dims) {
  auto value = file.dataset(path);
  ASSERT_TRUE(value.ok()) << path << ": " << value.error().message;
  EXPECT_EQ(value->dtype(), dtype) << path;
  ASSERT_EQ(std::vector<int64_t>(value->dims().begin(), value->dims().end()), dims) << path;
  for (int64_t i = 0; i < value->size(); ++i) EXPECT_EQ(value->get_double(i), i) << path;
}

class Hdf5Variants : public testing::TestWithParam<const char*> {};

TEST_P(Hdf5Variants, ReadsAll) {
  const auto file = open_hdf5(data(GetParam()));
  EXPECT_EQ(file->string("", "text"), "héllo");
  EXPECT_EQ(*file->strings("", "list"), (std::vector<std::string>{"a", "bb", ""}));
  EXPECT_EQ(*file->strings("", "fixed"), (std::vector<std::string>{"xx", "y"}));
  EXPECT_EQ(*file->strings("", "names"), (std::vector<std::string>{"p", "q", "r"}));
  EXPECT_EQ((*file->object(""))->attribute("number")->value.get_int64(0), 5);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(file->string("", "many" + std::to_string(i)), "value " + std::to_string(i));
  }
  EXPECT_EQ((*file->object("group"))->links.size(), 40u);
  for (int i = 0; i < 40; ++i) {
    auto value = file->dataset("group/member" + std::to_string(i));
    ASSERT_TRUE(value.ok());
    EXPECT_EQ(value->rank(), 0u);
    EXPECT_EQ(value->get_double(0), i);
  }
  expect_count(*file, "types/f4", DType::kFloat32, {2, 3});
  expect_count(*file, "types/f8", DType::kFloat64, {2, 3});
  expect_count(*file, "types/i1", DType::kInt8, {2, 3});
  expect_count(*file, "types/u2", DType::kUInt16, {2, 3});
  expect_count(*file, "types/i8", DType::kInt64, {2, 3});
  expect_count(*file, "types/f2", DType::kFloat16, {2, 3});
  expect_count(*file, "types/bf", DType::kBFloat16, {3});
  expect_count(*file, "types/bool", DType::kBool, {2});
  expect_count(*file, "types/empty", DType::kFloat32, {0, 3});
  EXPECT_EQ(file->dataset("types/strings")->strings(), (std::vector<std::string>{"ab", "c"}));
  expect_count(*file, "chunks/plain", DType::kFloat32, {9, 5});
  expect_count(*file, "chunks/gzip", DType::kFloat32, {9, 5});
  expect_count(*file, "chunks/all", DType::kFloat64, {9, 5});
}

TEST_P(Hdf5Variants, FollowsNoLinkOutOfTheFile) {
  const auto file = open_hdf5(data(GetParam()));
  EXPECT_FALSE(file->exists("outside"));
  EXPECT_FALSE(file->exists("soft"));
}

/// Reads everything that a file offers; what it says does not matter.
void read_all(std::string_view bytes) {
  auto file = Hdf5File::open(std::as_bytes(std::span<const char>(bytes)), nullptr);
  if (!file) {
    EXPECT_FALSE(file.error().message.empty());
    return;
  }
  for (const char* group : {"", "group", "types", "chunks"}) {
    auto object = (*file)->object(group);
    if (!object) continue;
    const auto links = (*object)->links;
    for (const Hdf5Link& link : links) {
      auto value = (*file)->dataset(std::string(group) + "/" + link.name);
      EXPECT_TRUE(value.ok() || !value.error().message.empty());
    }
  }
}

TEST_P(Hdf5Variants, SurvivesDamage) {
  auto file = MappedFile::open(data(GetParam()));
  ASSERT_TRUE(file.ok());
  const std::string whole(file->text());
  for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 400) {
    read_all(std::string(whole.data(), size));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 3; ++k) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
    }
    read_all(damaged);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Hdf5Variants,
                         testing::Values("earliest_plain.h5", "earliest_ordered.h5",
                                         "latest_plain.h5", "latest_ordered.h5"));

TEST(Hdf5, ViewsContiguousData) {
  const auto mapped =
      MappedFile::open(std::string(TOMBOLO_SOURCE_DIR) + "/examples/digits/digits.h5");
  ASSERT_TRUE(mapped.ok());
  auto file = Hdf5File::open(mapped->bytes(), mapped->owner());
  ASSERT_TRUE(file.ok());
  auto names = (*file)->strings("model_weights", "layer_names");
  ASSERT_TRUE(names.ok());
  size_t views = 0;
  for (const std::string& layer : *names) {
    const std::string group = "model_weights/" + layer;
    const auto weights = (*file)->strings(group, "weight_names");
    for (const std::string& weight : *weights) {
      auto value = (*file)->dataset(group + "/" + weight);
      ASSERT_TRUE(value.ok()) << weight;
      views += value->bytes().data() >= mapped->bytes().data() &&
               value->bytes().data() < mapped->bytes().data() + mapped->size();
    }
  }
  EXPECT_GT(views, 3u);
}

TEST(Hdf5, RefusesWhatIsNone) {
  for (const std::string text : {"", "hello", "\x89HDF\r\n\x1a\n"}) {
    auto file = Hdf5File::open(std::as_bytes(std::span<const char>(text)), nullptr);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().kind, ErrorKind::kParse);
  }
}

}  // namespace
}  // namespace tombolo
