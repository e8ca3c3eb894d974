#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "formats/common/deflate.h"
#include "formats/common/json_view.h"
#include "formats/common/zip.h"

namespace tombolo {
namespace {

TEST(Zip, ListsAndReadsAnArchive) {
  auto file = MappedFile::open(std::string(TOMBOLO_SOURCE_DIR) + "/examples/digits/digits.keras");
  ASSERT_TRUE(file.ok());
  auto archive = ZipArchive::open(file->bytes(), file->owner());
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  EXPECT_EQ(archive->members().size(), 3u);
  auto config = archive->read("config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->text().substr(0, 1), "{");
  EXPECT_FALSE(archive->read("absent").ok());
}

/// An archive of one stored member with this name, content and extra field of the directory.
std::string archive_of(const std::string& name, const std::string& content,
                       const std::string& extra = "") {
  const auto number = [](uint64_t value, size_t width) {
    std::string text;
    for (size_t i = 0; i < width; ++i) text += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
    return text;
  };
  const std::string sizes =
      number(0, 4) + number(content.size(), 4) + number(content.size(), 4) + number(name.size(), 2);
  const std::string local = "PK\3\4" + number(20, 2) + number(0, 8) + sizes + number(0, 2) + name;
  const std::string entry = "PK\1\2" + number(20, 2) + number(20, 2) + number(0, 8) + sizes +
                            number(extra.size(), 2) + number(0, 2 + 2 + 2 + 4) + number(0, 4) +
                            name + extra;
  return local + content + entry + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) +
         number(entry.size(), 4) + number(local.size() + content.size(), 4) + number(0, 2);
}

Result<ZipArchive> open_zip(const std::string& bytes) {
  return ZipArchive::open(std::as_bytes(std::span<const char>(bytes)), nullptr);
}

TEST(Deflate, ExpandsWholeFilesUpToALimit) {
  // 0x80 0x04 and 5,000 times the letter a, by zlib.
  const unsigned char packed[] = {0x78, 0xda, 0xed, 0xc1, 0x31, 0x01, 0x00, 0x00, 0x0c, 0x02, 0xa0,
                                  0x67, 0x45, 0x6d, 0xb2, 0xe8, 0xa6, 0xf0, 0x03, 0xfe, 0x02, 0x00,
                                  0x00, 0x00, 0x00, 0xcc, 0x15, 0x5f, 0x2b, 0x67, 0x76};
  const auto bytes = std::as_bytes(std::span<const unsigned char>(packed));
  ASSERT_TRUE(is_deflated(bytes));
  EXPECT_EQ(inflated_head(bytes, 3), std::string("\x80\x04") + "a");
  auto whole = inflated(bytes, Deflate::kZlibGzip, 5002);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(whole->bytes.size(), 5002u);
  EXPECT_FALSE(inflated(bytes, Deflate::kZlibGzip, 5001).ok());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(inflated(bytes.first(size), Deflate::kZlibGzip, 5002).ok()) << size;
  for (size_t i = 2; i < bytes.size(); ++i) {
    std::string damaged(reinterpret_cast<const char*>(packed), sizeof packed);
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    auto result = inflated(std::as_bytes(std::span<const char>(damaged)), Deflate::kZlibGzip, 5002);
    EXPECT_FALSE(result.ok()) << i;
  }
}

TEST(Zip, TakesWhatValuesAreCalled) {
  for (const char* name : {"a/b", "/Reshape_output_0", "../a", "a\\b", "", "x:0"}) {
    const std::string bytes = archive_of(name, "hello");
    auto archive = open_zip(bytes);
    ASSERT_TRUE(archive.ok()) << name << ": " << archive.error().message;
    EXPECT_EQ(archive->read(name)->text(), "hello") << name;
  }
}

TEST(Zip, RefusesTruncation) {
  const std::string good = archive_of("a", "hello");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(open_zip(good.substr(0, size)).ok()) << size;
  }
}

TEST(Zip, EndsAtADamagedExtraField) {
  // A field that says it is longer than what is left.
  const std::string bytes = archive_of("a", "hello", std::string("\2\0\7\0xy", 6));
  auto archive = open_zip(bytes);
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  EXPECT_EQ(archive->read("a")->text(), "hello");
}

TEST(Zip, RefusesWhatContradictsTheDirectory) {
  const std::string good = archive_of("name", "hello");
  for (const size_t at : {size_t{8}, size_t{18}, size_t{22}, size_t{30}}) {  // of the local header
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(open_zip(bad).ok()) << at;
  }
}

TEST(Zip, VerifiesStoredMembers) {
  // CRC-32 of "hello" in both headers; the data differ in a bit.
  std::string archive = archive_of("a", "hello");
  const std::string crc = "\x86\xa6\x10\x36";
  archive.replace(14, 4, crc);
  archive.replace(archive.find("PK\1\2") + 16, 4, crc);
  auto good = open_zip(archive);
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(good->verify(good->members()[0]).ok());
  archive[archive.find("hello")] = 'j';
  auto bad = open_zip(archive);
  ASSERT_TRUE(bad.ok());
  EXPECT_FALSE(bad->verify(bad->members()[0]).ok());
}

TEST(Json, ChecksEveryAccess) {
  auto document = JsonDocument::parse(R"({"a": [1, 2.5, true, null, "s"], "n": NaN, "i": 3.0})");
  ASSERT_TRUE(document.ok()) << document.error().message;
  const Json root = document->root();
  EXPECT_EQ(root["a"].size(), 5u);
  EXPECT_EQ(root["a"].at(0).int_or(7), 1);
  EXPECT_EQ(root["a"].at(1).as_int(), std::nullopt);
  EXPECT_EQ(root["a"].at(1).double_or(0), 2.5);
  EXPECT_EQ(root["a"].at(2).int_or(7), 1);
  EXPECT_TRUE(root["a"].at(3).is_null());
  EXPECT_EQ(root["a"].at(4).string_or(""), "s");
  EXPECT_FALSE(root["a"].at(5).exists());
  EXPECT_FALSE(root["b"]["c"].at(3).exists());
  EXPECT_EQ(root["i"].as_int(), 3);
  EXPECT_EQ(root["a"].as_ints(), std::nullopt);
}

TEST(Json, CapsNesting) {
  EXPECT_TRUE(JsonDocument::parse(std::string(200, '[') + std::string(200, ']')).ok());
  EXPECT_FALSE(JsonDocument::parse(std::string(300, '[') + std::string(300, ']')).ok());
  EXPECT_FALSE(JsonDocument::parse(std::string(10'000'000, '[')).ok());
}

TEST(Json, NamesThePlaceOfAnError) {
  auto document = JsonDocument::parse("{\n  \"a\": }");
  ASSERT_FALSE(document.ok());
  EXPECT_NE(document.error().message.find("line 2"), std::string::npos);
}

TEST(Json, ZerosWithExponents) {
  auto document = JsonDocument::parse(
      "[0e44, 0e-30, -0.00E+60, 0.0e-99, 10e2, 0.5e1, \"0e44\", 0e0044131030, 1e0]");
  ASSERT_TRUE(document) << document.error().message;
  const double wanted[] = {0, 0, 0, 0, 1000, 5};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(document->root().at(i).as_double(), wanted[i]) << i;
  EXPECT_EQ(document->root().at(6).as_string(), "0e44");
  EXPECT_EQ(document->root().at(7).as_double(), 0);
  EXPECT_EQ(document->root().at(8).as_double(), 1);
  EXPECT_FALSE(JsonDocument::parse("[0e]"));
}

}  // namespace
}  // namespace tombolo
