#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "temporary_folder.h"

namespace tombolo {
namespace {

TEST(MappedFile, MapsAndSharesBytes) {
  TemporaryFolder folder;
  auto file = MappedFile::open(folder.write("a", "hello"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->text(), "hello");
  EXPECT_EQ(file->name(), folder.file("a"));
  std::string_view text = file->text();
  std::shared_ptr<const void> owner = file->owner();
  *file = MappedFile();
  ::unlink(folder.file("a").c_str());
  EXPECT_EQ(text, "hello");
}

TEST(MappedFile, EmptyFileIsFine) {
  TemporaryFolder folder;
  auto file = MappedFile::open(folder.write("empty", ""));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 0u);
}

TEST(MappedFile, ErrorsNameTheFileAndTheReason) {
  TemporaryFolder folder;
  auto missing = MappedFile::open(folder.file("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kParse);
  EXPECT_NE(missing.error().message.find("none\": No such file"), std::string::npos)
      << missing.error().message;
  auto directory = MappedFile::open(folder.path());
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("directory"), std::string::npos);
  EXPECT_FALSE(MappedFile::open(std::string("a\0b", 3)));
  if (::geteuid() != 0) {
    ::chmod(folder.write("secret", "x").c_str(), 0);
    auto secret = MappedFile::open(folder.file("secret"));
    ASSERT_FALSE(secret);
    EXPECT_NE(secret.error().message.find("Permission"), std::string::npos);
  }
}

Result<MappedFile> through_pipe(const std::string& content, size_t limit) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  UniqueFd writer(ends[1]);
  std::thread feeder([&] {
    size_t at = 0;
    while (at < content.size()) {
      const ssize_t n = ::write(writer.get(), content.data() + at, content.size() - at);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    writer.reset();
  });
  // A second reader keeps the feeder from a SIGPIPE when the limit stops the first.
  UniqueFd spare(::dup(ends[0]));
  auto result = MappedFile::from_descriptor(UniqueFd(ends[0]), "pipe", limit);
  char drain[4096];
  if (!result) {
    while (::read(spare.get(), drain, sizeof(drain)) > 0) {
    }
  }
  feeder.join();
  return result;
}

TEST(MappedFile, PipesAreReadUpToALimit) {
  std::string content(300000, 'x');
  content[299999] = 'y';
  auto all = through_pipe(content, 300000);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->text(), content);
  auto too_much = through_pipe(content, 299999);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().kind, ErrorKind::kResource);
  auto none = through_pipe("", 0);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->size(), 0u);
}

TEST(MappedFile, FilesWithoutASizeAreRead) {
  auto file = MappedFile::open("/proc/self/status");
  ASSERT_TRUE(file);
  EXPECT_GT(file->size(), 0u);
}

// A sparse file of 8 GiB: mapping it must not read it, nor fail at 2 or 4 GiB.
TEST(MappedFile, LargeFilesCostNothing) {
  TemporaryFolder folder;
  const std::string path = folder.write("large", "");
  if (::truncate(path.c_str(), off_t{8} << 30) != 0) GTEST_SKIP() << "no sparse files here";
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->size(), size_t{8} << 30);
  EXPECT_EQ(file->text().back(), '\0');
  file->release_pages(file->bytes());
  EXPECT_EQ(file->text()[size_t{5} << 30], '\0');
}

TEST(MappedFile, FromMemory) {
  const auto file = MappedFile::from_memory("abc", "memory");
  const MappedFile copy = file;
  EXPECT_EQ(copy.text(), "abc");
  copy.release_pages(copy.bytes());
  EXPECT_EQ(copy.text(), "abc");
}

}  // namespace
}  // namespace tombolo
