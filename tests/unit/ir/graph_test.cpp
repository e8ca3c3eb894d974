#include <gtest/gtest.h>

#include "ir/model.h"
#include "ir/text/parser.h"

namespace tombolo {
namespace {

/// A graph whose If reads `x` from around it, in a node and as an output.
std::unique_ptr<Model> capturing() {
  auto model = parse_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[2] x) => (y) {
  y = If (c) <then_branch = t () => (u) { u = Neg (x) }, else_branch = e () => (x) { }>
})");
  EXPECT_TRUE(model) << model.error().message;
  return model ? *std::move(model) : nullptr;
}

TEST(Graph, AnAttributeThatGoesUsesNothingAnyMore) {
  const auto model = capturing();
  ASSERT_NE(model, nullptr);
  Graph& graph = *model->graph;
  Value* x = graph.find_value("x");
  Node* node = graph.find_value("y")->producer();
  ASSERT_EQ(x->uses().size(), 1u);
  ASSERT_EQ(x->output_uses(), 1u);
  node->remove_attribute("then_branch");
  EXPECT_EQ(x->uses().size(), 0u);
  node->set_attribute({"else_branch", AttrType::kInt, int64_t{1}});
  EXPECT_EQ(x->output_uses(), 0u);
}

TEST(Graph, AnErasedNodesBodiesUseNothingAnyMore) {
  const auto model = capturing();
  ASSERT_NE(model, nullptr);
  Graph& graph = *model->graph;
  Value* x = graph.find_value("x");
  Node* node = graph.find_value("y")->producer();
  graph.remove_output(0);
  graph.erase(node);
  EXPECT_EQ(x->uses().size(), 0u);
  EXPECT_EQ(x->output_uses(), 0u);
}

}  // namespace
}  // namespace tombolo
