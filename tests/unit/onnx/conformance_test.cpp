// Every model of the official conformance suite survives reading and writing. The suite is not in
// the repository: TOMBOLO_CONFORMANCE names the unpacked folder; without it this is skipped.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "onnx/json.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

namespace tombolo {
namespace {

std::vector<std::string> models() {
  std::vector<std::string> paths;
  const char* folder = std::getenv("TOMBOLO_CONFORMANCE");
  if (folder == nullptr) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".onnx")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(OnnxConformance, ReadWriteReadIsEqual) {
  const auto paths = models();
  if (paths.empty()) GTEST_SKIP() << "set TOMBOLO_CONFORMANCE to the unpacked conformance suite";
  size_t identical = 0;
  for (const std::string& path : paths) {
    auto model = load_onnx(path);
    ASSERT_TRUE(model.ok()) << path << ": " << model.error().where << ": " << model.error().message;
    auto bytes = write_onnx(**model);
    ASSERT_TRUE(bytes.ok()) << path;
    auto again = read_onnx(*bytes, std::make_shared<Storage>());
    ASSERT_TRUE(again.ok()) << path << ": " << again.error().message;
    (*again)->storage().set_folder((*model)->storage().folder());
    std::string difference;
    EXPECT_TRUE(equal(**model, **again, &difference)) << path << ": " << difference;
    auto file = MappedFile::open(path);
    ASSERT_TRUE(file.ok());
    const bool same = file->text() == *bytes;
    identical += same ? 1 : 0;
    if (!same && std::getenv("TOMBOLO_VERBOSE") != nullptr)
      std::printf("not byte for byte: %s\n", path.c_str());
  }
  RecordProperty("models", static_cast<int>(paths.size()));
  RecordProperty("identical", static_cast<int>(identical));
  std::printf("%zu of %zu models come back byte for byte\n", identical, paths.size());
}

TEST(OnnxConformance, JsonRoundTripIsEqual) {
  const auto paths = models();
  if (paths.empty()) GTEST_SKIP() << "set TOMBOLO_CONFORMANCE to the unpacked conformance suite";
  size_t identical = 0;
  for (const std::string& path : paths) {
    auto model = load_onnx(path);
    ASSERT_TRUE(model.ok()) << path;
    auto json = write_json(**model);
    ASSERT_TRUE(json.ok()) << path;
    auto again = read_json(*json);
    ASSERT_TRUE(again.ok()) << path << ": " << again.error().message;
    (*again)->storage().set_folder((*model)->storage().folder());
    std::string difference;
    EXPECT_TRUE(equal(**model, **again, &difference)) << path << ": " << difference;
    identical += *write_onnx(**model) == *write_onnx(**again) ? 1 : 0;
  }
  std::printf("%zu of %zu models come back from JSON byte for byte\n", identical, paths.size());
}

}  // namespace
}  // namespace tombolo
