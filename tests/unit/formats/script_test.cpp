#include <gtest/gtest.h>

#include "formats/pytorch/script/importer.h"
#include "formats/pytorch/script/syntax.h"

namespace tombolo::script {
namespace {

Result<std::unique_ptr<SourceFile>> parse(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return parse_source(*owner, owner, "code/a.py", "a");
}

TEST(ScriptSyntax, ReadsClassesAndFunctions) {
  auto file = parse(
      "op_version_set = 1\n"
      "class Net(Module):\n"
      "  __parameters__ = [\"w\", ]\n"
      "  w : Tensor\n"
      "  __annotations__[\"0\"] = __torch__.Layer\n"
      "  def forward(self: __torch__.Net,\n"
      "    x: Tensor,\n"
      "    n: Optional[int]=None) -> Tuple[Tensor, int]:\n"
      "    _0, _1, = torch.max(x, 1, keepdim=False)\n"
      "    if torch.__is__(n, None):\n"
      "      y = -1.5e-05\n"
      "    else:\n"
      "      y = 2\n"
      "    for i in range(3):\n"
      "      x = torch.add(x, y, alpha=i)\n"
      "    while bool(_0):\n"
      "      pass\n"
      "    return (getattr(self, \"0\").forward(x, ), (_1)[0])\n"
      "def helper(x: Tensor) -> NoneType:\n"
      "  return None\n");
  ASSERT_TRUE(file.ok()) << file.error().message << file.error().where;
  const Class& net = *(*file)->classes_by_name.at("Net");
  ASSERT_EQ(net.attributes.size(), 2u);
  EXPECT_EQ(net.attributes[1].first, "0");
  const Function& forward = *net.methods.at("forward");
  ASSERT_EQ(forward.parameters.size(), 3u);
  EXPECT_NE(forward.parameters[2].fallback, nullptr);
  ASSERT_EQ(forward.body.size(), 5u);
  EXPECT_TRUE(forward.body[0]->unpack);
  EXPECT_EQ(forward.body[1]->body[0]->value->real, -1.5e-05);
  EXPECT_EQ(forward.body[2]->line, 14u);
  EXPECT_TRUE((*file)->functions_by_name.contains("helper"));
}

TEST(ScriptSyntax, ReadsTextsAndNumbers) {
  auto file = parse(
      "def f() -> int:\n  a = \"x\\n\\\"\\101\"\n  b = -9223372036854775808\n  c = 0x10\n  d = "
      "1.j\n");
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto& body = (*file)->functions_by_name.at("f")->body;
  EXPECT_EQ(body[0]->value->text, "x\n\"A");
  EXPECT_EQ(body[1]->value->integer, INT64_MIN);
  EXPECT_EQ(body[2]->value->integer, 16);
  EXPECT_EQ(body[3]->value->kind, Expr::Kind::kImaginary);
}

TEST(ScriptSyntax, RefusesWithALine) {
  for (const char* bad :
       {"def f(:\n  pass\n", "class A\n", "def f():\n  x = (1, 2\n", "def f():\n  x = \"a\n",
        "def f():\n    a = 1\n  b = 2\n", "def f():\n  x = 1 +\n", "def f():\n  x = $\n"}) {
    auto file = parse(bad);
    ASSERT_FALSE(file.ok()) << bad;
    EXPECT_NE(file.error().where.find("line "), std::string::npos) << bad;
  }
  EXPECT_FALSE(parse("def f():\n  x = " + std::string(100000, '(') + "\n").ok());
  EXPECT_FALSE(parse("def f():\n  x = " + std::string(100000, '-') + "1\n").ok());
}

}  // namespace
}  // namespace tombolo::script
