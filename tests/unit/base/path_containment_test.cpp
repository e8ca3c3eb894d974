#include "base/path_containment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary_folder.h"

namespace tombolo {
namespace {

class PathContainment : public testing::TestWithParam<OpenMethod> {
 protected:
  PathContainment() {
    ::mkdir(outer_.file("model").c_str(), 0755);
    ::mkdir(outer_.file("model/sub").c_str(), 0755);
    outer_.write("secret", "secret");
    outer_.write("model/data", "data");
    outer_.write("model/sub/data", "deep");
  }
  Result<MappedFile> open(std::string_view location) {
    return open_contained(outer_.file("model"), location, GetParam());
  }
  void expect_refused(std::string_view location, const std::string& reason) {
    auto file = open(location);
    ASSERT_FALSE(file) << location;
    EXPECT_EQ(file.error().kind, ErrorKind::kParse);
    EXPECT_NE(file.error().message.find(reason), std::string::npos) << file.error().message;
  }
  TemporaryFolder outer_;
};

TEST_P(PathContainment, OpensFilesInsideTheFolder) {
  for (const char* location : {"data", "./data", ".//data"}) {
    auto file = open(location);
    ASSERT_TRUE(file) << location << ": " << file.error().message;
    EXPECT_EQ(file->text(), "data");
  }
  auto deep = open("sub/data");
  ASSERT_TRUE(deep);
  EXPECT_EQ(deep->text(), "deep");
  EXPECT_EQ(deep->name(), outer_.file("model/sub/data"));
}

TEST_P(PathContainment, RefusesWhatTheTextGivesAway) {
  using namespace std::string_view_literals;
  expect_refused("", "is empty");
  expect_refused("/etc/passwd", "is absolute");
  expect_refused("../secret", "leaves the model's folder");
  expect_refused("sub/../data", "leaves the model's folder");
  expect_refused("sub/..", "leaves the model's folder");
  expect_refused("..\\secret", "backslash");
  expect_refused("C:secret", "drive letter");
  expect_refused("data\0x"sv, "NUL");
  expect_refused(std::string(5000, 'a'), "too long");
  expect_refused(".", "names no file");
}

TEST_P(PathContainment, RefusesLinks) {
  ASSERT_EQ(::symlink("../secret", outer_.file("model/link").c_str()), 0);
  ASSERT_EQ(::symlink("data", outer_.file("model/inner").c_str()), 0);
  ASSERT_EQ(::symlink("..", outer_.file("model/up").c_str()), 0);
  ASSERT_EQ(::link(outer_.file("secret").c_str(), outer_.file("model/hard").c_str()), 0);
  expect_refused("link", "symbolic link");
  expect_refused("inner", "symbolic link");
  expect_refused("up/secret", "symbolic link");
  expect_refused("hard", "hard links");
}

TEST_P(PathContainment, RefusesWhatIsNotARegularFile) {
  ASSERT_EQ(::mkfifo(outer_.file("model/pipe").c_str(), 0644), 0);
  expect_refused("sub", "not a regular file");
  expect_refused("pipe", "not a regular file");
  expect_refused("data/x", "cannot be opened");
  expect_refused("data/", "ends in a slash");
  expect_refused("missing", "does not exist");
  expect_refused("\x1b[31mred", "\\x1b[31mred");
}

TEST_P(PathContainment, MissingFolder) {
  auto file = open_contained(outer_.file("none"), "data", GetParam());
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("model's folder"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Methods, PathContainment,
                         testing::Values(OpenMethod::kBest, OpenMethod::kComponentWalk));

}  // namespace
}  // namespace tombolo
