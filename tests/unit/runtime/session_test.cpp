#include "runtime/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "base/thread_pool.h"
#include "formats/common/cut.h"
#include "ir/text/parser.h"
#include "output_bits.h"

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

// Rows that are left over, attention whose heads are few, sums over much: what depends on where
// pieces end.
TEST(Session, GivesTheSameBitsOnAnyNumberOfThreads) {
  constexpr std::string_view kModel = R"(
<ir_version: 10, opset_import: ["" : 23]>
main (float[1, 3, 197, 24] x, float[24] g, float[24, 24] w) => (float[1, 3, 197, 24] y, float[3, 24] z) {
  n = LayerNormalization <axis = -1> (x, g)
  q = MatMul (n, w)
  a = Attention (q, n, x)
  s = Softmax <axis = -1> (a)
  axes = Constant <value_ints = [0, 2]> ()
  z = ReduceSum <keepdims = 0> (s, axes)
  y = LayerNormalization <axis = -1> (a, g)
}
)";
  std::vector<float> x(3 * 197 * 24), g(24), w(24 * 24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i % 1009));
  for (size_t i = 0; i < g.size(); ++i) g[i] = 1 + static_cast<float>(i) / 16;
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::cos(static_cast<float>(i * 7 % 101));
  const auto tensor = [](std::initializer_list<int64_t> dims, const std::vector<float>& values) {
    return RunValue(
        Tensor::of<float>(DType::kFloat32, std::span(dims.begin(), dims.size()), values));
  };
  const auto run = [&](int load_threads, int threads, bool deterministic) {
    set_thread_count(load_threads);
    SessionOptions options;
    options.deterministic = deterministic;
    auto session = session_of(kModel, options);
    EXPECT_TRUE(session) << session.error().message;
    set_thread_count(threads);
    auto outputs = (*session)->run(
        {{"x", tensor({1, 3, 197, 24}, x)}, {"g", tensor({24}, g)}, {"w", tensor({24, 24}, w)}});
    EXPECT_TRUE(outputs) << outputs.error().message;
    set_thread_count(0);
    return output_bits(*outputs);
  };
  for (const bool deterministic : {false, true}) {
    const std::vector<std::byte> one = run(1, 1, deterministic);
    for (const int threads : {2, 3, 8, 37}) {
      EXPECT_EQ(run(threads, threads, deterministic), one) << threads;
      EXPECT_EQ(run(1, threads, deterministic), one) << threads;
    }
  }
}

// Pieces are cut alike, and so is what they are cut into.
TEST(Session, CutsLoopsAlikeWhenDeterministic) {
  const auto pieces = [](int threads) {
    set_thread_count(threads);
    const FixedPieces fixed(true);
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> all;
    const auto body = [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(mutex);
      all.insert({begin, end});
      all.insert({thread_count(), 0});
      // Within a piece nothing is cut.
      parallel_for(
          100, 1,
          [](void* argument, int64_t from, int64_t to) {
            static_cast<std::set<std::pair<int64_t, int64_t>>*>(argument)->insert({from, -to});
          },
          &all);
    };
    parallel_for(
        1000, 7,
        [](void* argument, int64_t begin, int64_t end) {
          (*static_cast<const decltype(body)*>(argument))(begin, end);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
    set_thread_count(0);
    return all;
  };
  const auto one = pieces(1);
  EXPECT_GT(one.size(), 20u);
  for (const int threads : {2, 3, 16}) EXPECT_EQ(pieces(threads), one) << threads;
  EXPECT_NE(thread_count(), 0);
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

/// Weights at any address of a file, as protobuf leaves them.
/// Folding makes constants out of views of constants: these must not keep alive what keeps them.
TEST(Session, GivesItsModelBack) {
  for (const std::string_view text : {
           R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (y) <float[2] w = {1, 2}> { v = Identity (w)  y = Add (x, v) })",
           R"(<ir_version: 10, opset_import: ["" : 9]>
g (float[2] x) => (y) <bool c = {1}> {
  v = If (c) <then_branch = t () => (u) { u = Constant <value = float[2] {1, 2}> () },
              else_branch = e () => (o) { o = Constant <value = float[2] {3, 4}> () }>
  w = Constant <value = float[2] {5, 6}> ()
  z = Identity (w)
  s = Add (z, v)
  y = Add (x, s)
})"}) {
    auto model = parse_text(text);
    ASSERT_TRUE(model) << model.error().message;
    const std::weak_ptr<Storage> storage = (*model)->storage_ptr();
    {
      auto session = Session::create(*std::move(model));
      ASSERT_TRUE(session) << session.error().message;
      auto y = (*session)->run({{"x", floats({1, 1})}});
      ASSERT_TRUE(y) << y.error().message;
    }
    EXPECT_TRUE(storage.expired()) << text;
  }
}

TEST(Session, ComputesLargeProductsOfConstantsOnce) {
  for (const char* product :
       {"MatMul (a, b)", "Gemm <transA = 1, transB = 1> (a, b)",
        "Einsum <equation = \"ik, jk -> ij\"> (a, b)",
        "Einsum <equation = \"...k, k... -> ...\"> (a, b)",  // the sizes behind dots are equal
        "Conv (c, d)", "ConvTranspose (c, d)"}) {
    const std::string text =
        "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float x) => (y) "
        "<int64 zero = {0}, int64 many = {90000}, int64 one = {1}, int64[2] square = {300, 300}, "
        "int64[4] image = {1, 100, 30, 30}, int64[4] taps = {100, 100, 3, 3}, int64 seven = {7}> {"
        " n = Range (zero, many, one) m = Mod (n, seven) f = Cast <to = 1> (m)"
        " a = Reshape (f, square) b = Transpose (a) c = Reshape (f, image) d = Reshape (f, taps)"
        " p = " +
        std::string(product) + " s = ReduceSum <keepdims = 0> (p) y = Add (x, s) }";
    SessionOptions plain;
    plain.reference = true;
    plain.optimise = 0;
    auto fast = session_of(text), slow = session_of(text, plain);
    ASSERT_TRUE(fast && slow) << product;
    size_t nodes = 0;
    for ([[maybe_unused]] const Node* node : (*fast)->model().graph->nodes()) ++nodes;
    EXPECT_EQ(nodes, 1u) << product;
    auto got = (*fast)->run({{"x", Tensor::scalar_float(1)}});
    auto want = (*slow)->run({{"x", Tensor::scalar_float(1)}});
    ASSERT_TRUE(got && want) << product;
    const double value = (*want)[0].tensor().get_double(0);
    EXPECT_NEAR((*got)[0].tensor().get_double(0), value, 1e-6 * std::abs(value)) << product;
  }
}

TEST(Session, TakesWeightsAtOddAddresses) {
  struct Case {
    const char* text;
    std::vector<int64_t> x, w;
  };
  const Case cases[] = {
      {"y = MatMul (x, w)", {3, 160}, {160, 128}},
      {"y = Gemm <transB = 1, alpha = 0.5> (x, w)", {3, 160}, {128, 160}},
      {"y = Conv (x, w)", {1, 16, 9, 9}, {128, 16, 3, 3}},
      {"h = Relu (w)  z = ReduceSum (h)  v = MatMul (x, w)  y = Add (v, z)", {3, 160}, {160, 128}},
  };
  for (const Case& c : cases) {
    const int64_t count = element_count(c.w);
    for (const size_t offset : {0, 1, 2, 3}) {
      auto block = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(count) * 4 + 8);
      std::byte* at = block->data() + offset;
      for (int64_t i = 0; i < count; ++i) {
        const float value = static_cast<float>(i * 37 % 101 - 50) / 64;
        std::memcpy(at + i * 4, &value, 4);
      }
      std::vector<float> x(static_cast<size_t>(element_count(c.x)));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 6;
      std::vector<RunValue> results;
      for (const bool reference : {false, true}) {
        const auto shape = [](const std::vector<int64_t>& dims) { return dims_to_string(dims); };
        auto model =
            parse_text("<ir_version: 10, opset_import: [\"\" : 21]> g (float" + shape(c.x) +
                       " x, float" + shape(c.w) + " w) => (float y) { " + c.text + " }");
        ASSERT_TRUE(model) << model.error().message;
        Graph& graph = *(*model)->graph;
        Value* w = graph.add_initializer(
            "w", Tensor::view(DType::kFloat32, c.w, {at, static_cast<size_t>(count) * 4}, block));
        graph.remove_input(w);
        SessionOptions options;
        options.reference = reference;
        auto session = Session::create(*std::move(model), options);
        ASSERT_TRUE(session) << session.error().message;
        for (int run = 0; run < 2; ++run) {
          auto outputs = (*session)->run({{"x", Tensor::of<float>(DType::kFloat32, c.x, x)}});
          ASSERT_TRUE(outputs) << outputs.error().message;
          if (run == 1) results.push_back((*outputs)[0]);
        }
      }
      const Tensor &fast = results[0].tensor(), &slow = results[1].tensor();
      ASSERT_EQ(fast.size(), slow.size());
      for (int64_t i = 0; i < fast.size(); ++i)
        ASSERT_NEAR(fast.get_double(i), slow.get_double(i), 2e-3) << c.text << " " << offset;
    }
  }
}

}  // namespace
}  // namespace tombolo
