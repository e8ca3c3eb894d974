#include "formats/common/pickle.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "formats/common/numpy_pickle.h"

namespace tombolo {
namespace {

Result<Pickle> parse(std::string text) {
  auto owner = std::make_shared<std::string>(std::move(text));
  return Pickle::parse(std::as_bytes(std::span<const char>(*owner)), owner);
}
std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

TEST(Pickle, ReadsTextProtocol) {
  auto pickle = parse("(dp0\nS'a\\n'\np1\n(lp2\nI1\naI01\naL-5L\naF1.5\naVx\\u00e9\nas.");
  ASSERT_TRUE(pickle.ok()) << pickle.error().message;
  const PickleValue* list = pickle->root().find("a\n");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->items.size(), 5u);
  EXPECT_EQ(list->items[0]->as_int(), 1);
  EXPECT_TRUE(list->items[1]->is(PickleValue::Kind::kBool));
  EXPECT_EQ(list->items[2]->as_int(), -5);
  EXPECT_EQ(list->items[3]->as_double(), 1.5);
  EXPECT_EQ(list->items[4]->text, "x\xc3\xa9");
}

TEST(Pickle, ReadsBinaryProtocols) {
  // Protocol 4: frame, memoised text, a tuple of a small, a negative and a long number.
  auto pickle = parse(bytes({0x80, 4, 0x95, 13, 0, 0, 0, 0, 0, 0, 0}) +
                      bytes({'K', 7, 'J', 0xff, 0xff, 0xff, 0xff, 0x8a, 2, 0, 1, 0x87, '.'}));
  ASSERT_TRUE(pickle.ok()) << pickle.error().message;
  EXPECT_EQ(pickle->root().as_ints(), (std::vector<int64_t>{7, -1, 256}));
  EXPECT_EQ(pickle->protocol(), 4);
}

TEST(Pickle, KeepsUnknownClassesAsRecords) {
  auto pickle = parse(
      "\x80\x02"
      "cmy.module\nModel\n)\x81}U\x01"
      "wK\x05sb.");
  ASSERT_TRUE(pickle.ok()) << pickle.error().message;
  EXPECT_EQ(pickle->root().qualified_name(), "my.module.Model");
  ASSERT_NE(pickle->root().attribute("w"), nullptr);
  EXPECT_EQ(pickle->root().attribute("w")->as_int(), 5);
}

// Protocol 2 has bytes as encoded text: they are decoded into the pickle's own memory.
TEST(Pickle, ItsOwnerKeepsDecodedArrays) {
  std::string text(
      "\x80\x02"
      "cnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\n");
  const auto part = [&](const char* chars, size_t size) { text.append(chars, size); };
#define PART(chars) part(chars, sizeof(chars) - 1)
  PART(
      "K\0\x85"
      "c_codecs\nencode\nq\x03X\1\0\0\0bX\6\0\0\0latin1\x86R\x87R");
  PART(
      "(K\1K\2K\3\x86"
      "cnumpy\ndtype\nX\2\0\0\0i2\x89\x88\x87R(K\3X\1\0\0\0<NNNJ\xff\xff\xff\xff"
      "J\xff\xff\xff\xffK\0tb\x89h\3X\x0c\0\0\0\0\0\1\0\2\0\3\0\4\0\5\0X\6\0\0\0latin1\x86Rtb.");
#undef PART
  auto pickle = parse(text);
  ASSERT_TRUE(pickle.ok()) << pickle.error().message;
  auto tensor = numpy_tensor(pickle->root(), pickle->owner());
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  const std::weak_ptr<const void> owner = pickle->owner();
  *pickle = Pickle();
  ASSERT_FALSE(owner.expired());
  ASSERT_EQ(tensor->size(), 6);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensor->get_int64(i), i);
}

TEST(Pickle, RefusesCallsByName) {
  struct Case {
    std::string text, name;
  };
  const Case cases[] = {
      {"cos\nsystem\n(S'id'\ntR.", "os.system"},
      {"\x80\x02"
       "c__builtin__\neval\nU\x01"
       "1\x85R.",
       "builtins.eval"},
      {"(S'id'\nios\nsystem\n.", "os.system"},
      {"(cos\nsystem\nS'id'\no.", "os.system"},
      {"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", "posix.system"},
      {"\x80\x02"
       "cbuiltins\ngetattr\nU\x01"
       "aU\x01"
       "b\x86R.",
       "builtins.getattr"},
      // Hidden behind a function that calls what it is given.
      {"ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nNNNtR.", "os.system"},
  };
  for (const Case& one : cases) {
    auto pickle = parse(one.text);
    ASSERT_FALSE(pickle.ok()) << one.name;
    EXPECT_EQ(pickle.error().kind, ErrorKind::kUnsupported);
    EXPECT_NE(pickle.error().message.find(one.name), std::string::npos) << pickle.error().message;
    EXPECT_FALSE(pickle.error().help.empty());
  }
  EXPECT_FALSE(parse("cfunctools\npartial\n(cos\nsystem\ntR(tR.").ok());
}

TEST(Pickle, RefusesDamage) {
  const std::string good =
      "\x80\x02]q\x01(K\x01U\x03"
      "abce.";
  ASSERT_TRUE(parse(good).ok());
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parse(good.substr(0, size)).ok()) << size;
  for (const char* bad :
       {"t.", "s.", "a.", "R.", "b.", "h\x05.", "(.", "e.", "u.", "\xff.", "Iabc\n.", "S'a\n."})
    EXPECT_FALSE(parse(bad).ok()) << bad;
}

TEST(Pickle, TableNamesNothingThatRunsCode) {
  for (const HarmlessCall& row : harmless_calls()) {
    for (const char* module : {"os", "posix", "nt", "subprocess", "sys", "runpy", "importlib"})
      EXPECT_NE(row.module, module);
    for (const char* name : {"eval", "exec", "getattr", "compile", "open", "__import__", "apply"})
      EXPECT_NE(row.name, name);
  }
}

}  // namespace
}  // namespace tombolo
