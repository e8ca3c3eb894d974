#include "base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapped_file.h"
#include "temporary_folder.h"

namespace tombolo {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(OutputFile, AppearsOnlyAtCommit) {
  TemporaryFolder folder;
  {
    auto out = OutputFile::create(folder.file("a"));
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->write("hello "));
    ASSERT_TRUE(out->write("world"));
    EXPECT_EQ(out->position(), 11u);
    EXPECT_NE(::access(folder.file("a").c_str(), F_OK), 0);
    ASSERT_TRUE(out->commit());
  }
  EXPECT_EQ(folder.read("a"), "hello world");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(OutputFile, WithoutCommitNothingChanges) {
  TemporaryFolder folder;
  folder.write("a", "old");
  {
    auto out = OutputFile::create(folder.file("a"));
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->write(std::string(1 << 20, 'x')));
  }
  EXPECT_EQ(folder.read("a"), "old");
  EXPECT_EQ(folder.count(), 1u);
}

// Reading and writing one file: the reader keeps what it mapped.
TEST(OutputFile, ReplacesAMappedFileAndKeepsItsMode) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  ::chmod(path.c_str(), 0640);
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped);
  auto out = OutputFile::create(path);
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->write("new"));
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(mapped->text(), "old");
  EXPECT_EQ(folder.read("a"), "new");
  EXPECT_EQ(mode_of(path), 0640u);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(OutputFile, NewFilesFollowTheUmask) {
  TemporaryFolder folder;
  const mode_t mask = ::umask(027);
  auto out = OutputFile::create(folder.file("a"));
  ::umask(mask);
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(mode_of(folder.file("a")), 0640u);
}

TEST(OutputFile, SmallAndLargeWritesKeepTheirOrder) {
  TemporaryFolder folder;
  auto out = OutputFile::create(folder.file("a"));
  ASSERT_TRUE(out);
  std::string expected;
  for (size_t size : {1, 3, 300000, 2, 262144, 262143, 5, 0, 1000000}) {
    const std::string part(size, static_cast<char>('a' + size % 26));
    ASSERT_TRUE(out->write(part));
    expected += part;
  }
  ASSERT_TRUE(out->pad_to(4096));
  expected.resize((expected.size() + 4095) / 4096 * 4096);
  EXPECT_EQ(out->position(), expected.size());
  ASSERT_TRUE(out->pad_to(4096));
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(folder.read("a"), expected);
}

TEST(OutputFile, SymbolicLinksStay) {
  TemporaryFolder folder;
  folder.write("real", "old");
  ASSERT_EQ(::symlink("real", folder.file("link").c_str()), 0);
  ASSERT_EQ(::symlink("fresh", folder.file("dangling").c_str()), 0);
  for (const char* name : {"link", "dangling"}) {
    auto out = OutputFile::create(folder.file(name));
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->write(name));
    ASSERT_TRUE(out->commit());
  }
  EXPECT_EQ(folder.read("real"), "link");
  EXPECT_EQ(folder.read("fresh"), "dangling");
  EXPECT_EQ(folder.count(), 4u);
}

TEST(OutputFile, DevicesAreWrittenNotReplaced) {
  auto out = OutputFile::create("/dev/null");
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->write("x"));
  ASSERT_TRUE(out->commit());
  struct stat info {};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(OutputFile, AFullDiskIsAResourceError) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  auto out = OutputFile::create("/dev/full");
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->write("buffered"));
  auto status = out->commit();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kResource);
  auto second = OutputFile::create("/dev/full");
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->write(std::string(1 << 20, 'x')));
}

TEST(OutputFile, ErrorsNameTheReason) {
  TemporaryFolder folder;
  auto missing = OutputFile::create(folder.file("none/a"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kParse);
  EXPECT_FALSE(missing.error().help.empty());
  auto directory = OutputFile::create(folder.path());
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("directory"), std::string::npos);
  EXPECT_FALSE(OutputFile::create(""));
  EXPECT_FALSE(OutputFile::create(folder.file("a/")));
  if (::geteuid() != 0) {
    ::chmod(folder.write("fixed", "x").c_str(), 0444);
    EXPECT_FALSE(OutputFile::create(folder.file("fixed")));
  }
}

TEST(OutputSet, PublishesAll) {
  TemporaryFolder folder;
  folder.write("model", "old");
  OutputSet set;
  auto data = set.create(folder.file("data"));
  auto model = set.create(folder.file("model"));
  ASSERT_TRUE(data && model);
  ASSERT_TRUE((*data)->write("weights"));
  ASSERT_TRUE((*model)->write("graph"));
  EXPECT_EQ(folder.read("model"), "old");
  ASSERT_TRUE(set.commit());
  EXPECT_EQ(folder.read("data"), "weights");
  EXPECT_EQ(folder.read("model"), "graph");
  EXPECT_EQ(folder.count(), 2u);
}

// The last target becomes a folder meanwhile: its rename fails, and the others go back.
TEST(OutputSet, AFailingRenameUndoesTheOthers) {
  TemporaryFolder folder;
  folder.write("changed", "old");
  {
    OutputSet set;
    auto changed = set.create(folder.file("changed"));
    auto fresh = set.create(folder.file("fresh"));
    auto broken = set.create(folder.file("no/broken"));
    EXPECT_FALSE(broken);
    ::mkdir(folder.file("gone").c_str(), 0755);
    auto last = set.create(folder.file("gone/last"));
    ASSERT_TRUE(changed && fresh && last);
    ASSERT_TRUE((*changed)->write("new"));
    ASSERT_TRUE((*fresh)->write("new"));
    std::filesystem::remove_all(folder.file("gone"));
    auto status = set.commit();
    ASSERT_FALSE(status);
  }
  EXPECT_EQ(folder.read("changed"), "old");
  EXPECT_EQ(folder.count(), 1u);
}

// What a signal handler does before the process ends.
TEST(OutputFile, TemporariesCanBeRemovedAtOnce) {
  // However many folders were written to before.
  for (int i = 0; i < 10; ++i) {
    TemporaryFolder other;
    ASSERT_TRUE(OutputFile::create(other.file("a")));
  }
  TemporaryFolder folder;
  folder.write("a", "old");
  auto first = OutputFile::create(folder.file("a"));
  auto second = OutputFile::create(folder.file("b"));
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  ASSERT_TRUE(first->write(std::string(1 << 20, 'x')));
  EXPECT_EQ(folder.count(), 3u);
  remove_temporaries();
  EXPECT_EQ(folder.count(), 1u);
  EXPECT_EQ(folder.read("a"), "old");
}

TEST(OutputSet, TwoOutputsOfOneName) {
  TemporaryFolder folder;
  OutputSet set;
  ASSERT_TRUE(set.create(folder.file("a")));
  auto again = set.create(folder.path() + "/./a");
  auto same = set.create(folder.file("a"));
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(again);
}

}  // namespace
}  // namespace tombolo
