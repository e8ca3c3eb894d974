#include "formats/common/layout.h"

#include <gtest/gtest.h>

#include "ir/model.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"

namespace tombolo {
namespace {

/// The operators that are left, in order, with Transposes' permutations.
std::string resolved(const std::string& graph_text) {
  auto model = parse_text("<ir_version: 10, opset_import: [\"\": 22]>\n" + graph_text);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  Graph& graph = *(*model)->graph;
  const Status done = resolve_layout(graph);
  EXPECT_TRUE(done.ok());
  std::string result;
  for (const Node* node : graph.nodes()) {
    result += (result.empty() ? "" : " ") + std::string(node->op_type());
    if (node->op_type() == "Transpose") {
      for (const int64_t axis : node->attribute("perm")->ints()) result += std::to_string(axis);
    }
  }
  return result;
}

TEST(Layout, CancelsPairsThroughElementwise) {
  EXPECT_EQ(resolved(R"(g (float[n,4,5,3] x) => (float[n,4,5,3] y)
      <float[n,3,4,5] a, float[n,3,4,5] b, float[n,4,5,3] c, float[n,4,5,3] d, float[n,3,4,5] e>
      { a = Transpose<perm=[0,3,1,2]>(x)  b = MaxPool<kernel_shape=[1,1]>(a)
        c = Transpose<perm=[0,2,3,1]>(b)  d = Relu(c)  e = Transpose<perm=[0,3,1,2]>(d)
        f = MaxPool<kernel_shape=[1,1]>(e)  y = Transpose<perm=[0,2,3,1]>(f) })"),
            "Transpose0312 MaxPool Relu MaxPool Transpose0231");
}

TEST(Layout, TurnsConstantsOfBroadcasts) {
  EXPECT_EQ(resolved(R"(g (float[n,3,4,5] x) => (float[n,3,4,5] y)
      <float[3] k = {1, 2, 3}, float[n,4,5,3] a, float[n,4,5,3] b>
      { a = Transpose<perm=[0,2,3,1]>(x)  b = Mul(a, k)  y = Transpose<perm=[0,3,1,2]>(b) })"),
            "Mul");
}

TEST(Layout, MovesAxesOfReductions) {
  EXPECT_EQ(resolved(R"(g (float[n,3,4,5] x) => (float[n,3] y)
      <int64[2] k = {1, 2}, float[n,4,5,3] a>
      { a = Transpose<perm=[0,2,3,1]>(x)  y = ReduceMean<keepdims=0>(a, k) })"),
            "ReduceMean");
}

TEST(Layout, KeepsATransposeBeforeFlatten) {
  EXPECT_EQ(resolved(R"(g (float[n,3,4,5] x) => (float[n,60] y) <float[n,4,5,3] a>
      { a = Transpose<perm=[0,2,3,1]>(x)  y = Flatten(a) })"),
            "Transpose0231 Flatten");
}

TEST(Layout, DropsATransposeThatMovesOnlyOnes) {
  EXPECT_EQ(resolved(R"(g (float[n,3,1,1] x) => (float[n,3] y) <float[n,1,1,3] a>
      { a = Transpose<perm=[0,2,3,1]>(x)  y = Flatten(a) })"),
            "Flatten");
}

TEST(Layout, PutsATransposeBeforeGemmIntoTheWeight) {
  EXPECT_EQ(resolved(R"(g (float[n,2,1,2] x) => (float[n,1] y)
      <float[4,1] w = {1, 2, 3, 4}, float[n,1,2,2] a, float[n,4] f>
      { a = Transpose<perm=[0,2,3,1]>(x)  f = Flatten(a)  y = Gemm(f, w) })"),
            "Flatten Gemm");
}

TEST(Layout, LeavesAnInputThatWouldCostMore) {
  EXPECT_EQ(resolved(R"(g (float[n,3,4,5] x, float[n,4,5,3] z) => (float[n,4,5,3] y)
      <float[n,4,5,3] a>
      { a = Transpose<perm=[0,2,3,1]>(x)  y = Add(a, z) })"),
            "Transpose0231 Add");
}

}  // namespace
}  // namespace tombolo
