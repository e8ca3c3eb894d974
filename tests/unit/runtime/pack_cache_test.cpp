// Packed weights on disk: found again, bit for bit; damage, other weights and other layouts are
// noticed.

#include "runtime/pack_cache.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "ir/text/parser.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

class PackCacheTest : public ::testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    if (DIR* folder = opendir(folder_.c_str())) {
      while (const dirent* entry = readdir(folder))
        if (entry->d_name[0] != '.') names.push_back(folder_ + "/" + entry->d_name);
      closedir(folder);
    }
    return names;
  }

  /// x W for W[i, j] = first + (i + 3 j) % 7, through the cache or without it.
  std::vector<float> product(bool cached, int first = 1, std::string_view op = "MatMul (x, w)") {
    std::string numbers;
    for (int i = 0; i < kSize; ++i)
      for (int j = 0; j < kSize; ++j)
        numbers += std::to_string(first + (i + 3 * j) % 7) + (i + j < 2 * kSize - 2 ? "," : "");
    const std::string size = std::to_string(kSize);
    auto model = parse_text("<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[2," + size +
                            "] x) => (float[2," + size + "] y) <float[" + size + "," + size +
                            "] w = {" + numbers + "}> { y = " + std::string(op) + " }");
    if (!model) {
      ADD_FAILURE() << model.error().message;
      return {};
    }
    SessionOptions options;
    if (cached) options.pack_cache = folder_;
    auto session = Session::create(*std::move(model), options);
    std::vector<float> x(2 * kSize);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) - 4.5f;
    const int64_t dims[] = {2, kSize};
    auto outputs = (*session)->run({{"x", Tensor::of<float>(DType::kFloat32, dims, x)}});
    if (!outputs) {
      ADD_FAILURE() << outputs.error().message;
      return {};
    }
    const Tensor& y = (*outputs)[0].tensor();
    return {y.data<float>(), y.data<float>() + y.size()};
  }

  static constexpr int kSize = 160;
  TemporaryFolder root_;
  std::string folder_ = root_.path() + "/packs";
};

ino_t inode(const std::string& file) {
  struct stat status = {};
  return stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
}

TEST_F(PackCacheTest, IsWrittenOnceAndFoundAgain) {
  const std::vector<float> plain = product(false);
  EXPECT_EQ(product(true), plain);
  ASSERT_EQ(files().size(), 1u);
  const ino_t first = inode(files()[0]);
  EXPECT_EQ(product(true), plain);
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(inode(files()[0]), first);  // a file that is written anew is another one
}

TEST_F(PackCacheTest, OtherWeightsAndLayoutsHaveFilesOfTheirOwn) {
  product(true);
  EXPECT_EQ(product(true, 2), product(false, 2));
  EXPECT_EQ(files().size(), 2u);
  const std::string_view turned = "Gemm <transB = 1> (x, w)", scaled = "Gemm <alpha = 0.5> (x, w)";
  EXPECT_EQ(product(true, 1, turned), product(false, 1, turned));
  EXPECT_EQ(product(true, 1, scaled), product(false, 1, scaled));
  EXPECT_EQ(files().size(), 4u);
}

TEST_F(PackCacheTest, DamageIsNoticedAndMended) {
  const std::vector<float> plain = product(true);
  ASSERT_EQ(files().size(), 1u);
  const std::string file = files()[0];
  std::string whole;
  {
    std::ifstream in(file, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  // In the mark, the size, the check, the pack; cut short, too long, empty.
  std::vector<std::string> damaged;
  for (const size_t at : {size_t{0}, size_t{9}, size_t{17}, whole.size() / 2}) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  damaged.push_back(whole.substr(0, whole.size() / 2));
  damaged.push_back(whole + "more");
  damaged.emplace_back();
  for (const std::string& bytes : damaged) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    EXPECT_EQ(product(true), plain);
    std::ifstream in(file, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), whole);
  }
}

TEST_F(PackCacheTest, NeedsAFolderThatCanBe) {
  for (const char* folder : {"/proc/none/packs", "/dev/null"}) {
    auto model = parse_text(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "main (float[N] x) => (float[N] y) { y = Neg (x) }");
    ASSERT_TRUE(model);
    SessionOptions options;
    options.pack_cache = folder;
    auto session = Session::create(*std::move(model), options);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().kind, ErrorKind::kUsage);
    EXPECT_NE(session.error().message.find(folder), std::string::npos);
  }
}

}  // namespace
}  // namespace tombolo
