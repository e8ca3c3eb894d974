#include "runtime/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "formats/common/cut.h"
#include "ir/text/parser.h"

namespace tombolo {
namespace {

Result<std::unique_ptr<Session>> session_of(std::string_view text, SessionOptions options = {}) {
  TRY(std::unique_ptr<Model> model, parse_text(text));
  return Session::create(std::move(model), options);
}

RunValue floats(std::initializer_list<float> values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return Tensor::of<float>(DType::kFloat32, dims, {values.begin(), values.size()});
}

constexpr std::string_view kFunction = R"(
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
main (float[N] x) => (float[N] y) { y = local.scale <factor = 3.0> (x) }
<domain: "local", opset_import: ["" : 21]>
scale <factor> (a) => (b) { c = Constant <value_float: float = @factor> ()  b = Mul (a, c) }
)";

TEST(Session, BindsAttributesOfFunctions) {
  auto session = session_of(kFunction);
  ASSERT_TRUE(session) << session.error().message;
  auto outputs = (*session)->run({{"x", floats({1, -2})}});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].tensor().get_double(1), -6);
}

TEST(Session, RefusesFunctionsThatCallThemselves) {
  constexpr std::string_view kRecursive = R"(
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
main (float[N] x) => (float[N] y) { y = local.f (x) }
<domain: "local", opset_import: ["" : 21, "local" : 1]>
f (a) => (b) { b = local.f (a) }
)";
  auto session = session_of(kRecursive);
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().message.find("functions call each other"), std::string::npos);
  SessionOptions plain;
  plain.optimise = 0;
  auto as_written = session_of(kRecursive, plain);
  ASSERT_FALSE(as_written);
  EXPECT_NE(as_written.error().message.find("itself"), std::string::npos);
}

TEST(Session, SubgraphsSeeWhatIsAroundThem) {
  auto session = session_of(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (bool c, float[N] x) => (float[N] y) {
  h = Neg (x)
  y = If (c) <then_branch = t () => (float[N] u) { u = Add (h, x) },
              else_branch = e () => (float[N] v) { v = Mul (h, x) }>
}
)");
  ASSERT_TRUE(session) << session.error().message;
  const uint8_t no = 0;
  const RunValue condition = Tensor::of<uint8_t>(DType::kBool, {}, {&no, 1});
  auto outputs = (*session)->run({{"c", condition}, {"x", floats({3})}});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].tensor().get_double(0), -9);
}

TEST(Session, NamesEveryOperatorWithoutKernel) {
  auto session = session_of(R"(
<ir_version: 10, opset_import: ["" : 21, "x" : 1]>
main (float[N] a) => (float[N] d) { b = x.One (a)  c = x.Two (b)  d = x.Two (c) }
)");
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(session.error().message.find("x.One (1 node), x.Two (2 nodes)"), std::string::npos);
}

TEST(Session, RefusesWhatWouldNotFitBeforeItAllocates) {
  SessionOptions options;
  options.memory_limit = 1 << 20;
  auto session = session_of(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x) => (float[M] y) { n = Constant <value_ints: ints = [1000000]> ()  y = Tile (x, n) }
)",
                            options);
  ASSERT_TRUE(session) << session.error().message;
  const uint64_t before = live_tensor_bytes();
  auto outputs = (*session)->run({{"x", floats({1, 2})}});
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.error().kind, ErrorKind::kResource);
  EXPECT_EQ(live_tensor_bytes(), before);
}

TEST(Session, ChecksInputsAgainstTheirTypes) {
  auto session = session_of(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x, float[N] y) => (float[N] z) { z = Add (x, y) }
)");
  ASSERT_TRUE(session);
  EXPECT_EQ((*session)->run({{"x", floats({1})}}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ((*session)->run({{"q", floats({1})}}).error().kind, ErrorKind::kUsage);
  auto differ = (*session)->run({{"x", floats({1})}, {"y", floats({1, 2})}});
  ASSERT_FALSE(differ);
  EXPECT_NE(differ.error().message.find("dimension N"), std::string::npos);
}

TEST(Session, RunsOnManyThreadsAtATime) {
  auto session = session_of(kFunction);
  ASSERT_TRUE(session);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        auto outputs = (*session)->run({{"x", floats({static_cast<float>(t)})}});
        if (!outputs || (*outputs)[0].tensor().get_double(0) != 3.0 * t) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Cut, FeedsAnInnerValueAndDropsTheRest) {
  auto model = parse_text(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x) => (float[N] y) { h = Relu (x)  k = Neg (h)  y = Exp (k) }
)");
  ASSERT_TRUE(model);
  ASSERT_TRUE(cut_graph(**model, {"h"}, {"k"}));
  EXPECT_EQ((*model)->graph->node_count(), 1u);
  auto session = Session::create(*std::move(model));
  ASSERT_TRUE(session) << session.error().message;
  auto outputs = (*session)->run({{"h", floats({5})}});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].tensor().get_double(0), -5);
}

}  // namespace
}  // namespace tombolo
