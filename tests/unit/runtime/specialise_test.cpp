// Runs along memory plans give what runs node by node with the reference kernels give.

#include "runtime/specialise.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/block_cache.h"
#include "runtime/arena_plan.h"
#include "runtime/profile.h"
#include "session_for.h"

namespace tombolo {
namespace {

Tensor ramp(std::initializer_list<int64_t> dims, float first = -3) {
  const std::vector<int64_t> shape(dims);
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + 0.5f * static_cast<float>(i % 17);
  return Tensor::of<float>(DType::kFloat32, shape, values);
}

/// Runs `text` three times with each shape, in turns, along plans and with the reference kernels.
void agree(std::string_view text, const std::vector<std::vector<NamedValue>>& inputs) {
  SessionOptions plain;
  plain.reference = true;
  plain.specialise = false;
  plain.optimise = 0;
  auto fast = session_for(text), slow = session_for(text, plain);
  ASSERT_TRUE(fast && slow);
  for (int round = 0; round < 3; ++round)
    for (const auto& given : inputs) {
      auto got = fast->run(given), want = slow->run(given);
      ASSERT_TRUE(got) << got.error().where << ": " << got.error().message;
      ASSERT_TRUE(want) << want.error().message;
      ASSERT_EQ(got->size(), want->size());
      for (size_t i = 0; i < got->size(); ++i) {
        ASSERT_EQ((*got)[i].kind(), (*want)[i].kind());
        if ((*got)[i].is_tensor()) {
          EXPECT_EQ((*got)[i].tensor(), (*want)[i].tensor())
              << "output " << i << " round " << round;
        }
      }
    }
}

/// A loop that appends takes the sequence it was given; who else holds it does not notice.
TEST(Specialise, SequencesThatGrow) {
  const std::string text = R"(
<ir_version: 8, opset_import: ["" : 17]>
main (float[1,N] x, int64 n) => (y, z, w, v) {
  c = Constant <value = bool {1}> ()
  two = Constant <value_int = 2> ()
  e = SequenceEmpty ()
  first = Relu (x)
  start = SequenceInsert (e, first)
  a, grown, scan = Loop <body = body (int64 i, bool k, float[1,N] b, seq(float[1,N]) s)
      => (bool k2, float[1,N] b2, seq(float[1,N]) s4, float[1,N] b3) {
    k2 = Identity (k)
    b2 = Neg (b)
    last = Constant <value_int = -1> ()
    b4, s2 = Loop <body = inner (int64 j, bool q, float[1,N] d, seq(float[1,N]) t)
        => (bool q2, float[1,N] d2, seq(float[1,N]) t2) {
      q2 = Identity (q)
      d2 = Add (d, first)
      t1 = SequenceInsert (t, first)
      zero = Constant <value_int = 0> ()
      t2 = SequenceInsert (t1, d2, zero)
    }> (two, k, b2, s)
    s3 = SequenceErase (s2, last)
    s4 = SequenceInsert (s3, b2)
    b3 = Add (b2, b4)
  }> (n, c, x, start)
  y = ConcatFromSequence <axis = 0> (grown)
  twice = SequenceInsert (grown, x)
  z = ConcatFromSequence <axis = 0> (grown)
  w = ConcatFromSequence <axis = 0> (twice)
  v = ConcatFromSequence <axis = 0> (start)
}
)";
  std::vector<std::vector<NamedValue>> inputs;
  for (const int64_t n : {0, 1, 7, 40})
    for (const int64_t width : {3, 70})
      inputs.push_back({{"x", ramp({1, width})}, {"n", Tensor::scalar_int64(n)}});
  agree(text, inputs);
  auto session = session_for(text);
  ASSERT_TRUE(session);
  for (int round = 0; round < 3; ++round) {
    auto got = session->run({{"x", ramp({1, 5})}, {"n", Tensor::scalar_int64(9)}});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ((*got)[0].tensor().dim(0), 1 + 4 * 9);
    EXPECT_EQ((*got)[0].tensor(), (*got)[1].tensor());
    EXPECT_EQ((*got)[2].tensor().dim(0), 2 + 4 * 9);
    EXPECT_EQ((*got)[3].tensor().dim(0), 1);
  }
}

TEST(ArenaPlan, NeverOverlapsWhatIsAliveTogether) {
  uint64_t state = 1;
  auto next = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (size_t count : {5u, 200u, 4000u}) {
    std::vector<ArenaBlock> blocks;
    size_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      ArenaBlock block;
      block.bytes = next(5000);
      block.first = static_cast<int>(next(100));
      block.last = block.first + static_cast<int>(next(20));
      sum += block.bytes + 128;
      blocks.push_back(block);
    }
    const size_t total = place_blocks(blocks);
    EXPECT_LE(total, sum);
    for (const ArenaBlock& a : blocks) {
      EXPECT_LE(a.offset + a.bytes, total);
      EXPECT_EQ(a.offset % 64, 0u);
      for (const ArenaBlock& b : blocks) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        ASSERT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
  }
}

TEST(Specialise, InPlaceViewsAndBranches) {
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N,4] x) => (float[M] y, float[N,4] z, float[N,4] w) {
  a = Relu (x)
  b = Relu (a)
  flat = Constant <value_ints: ints = [-1]> ()
  c = Reshape (b, flat)
  y = Relu (c)
  d = Neg (a)
  z = Relu (d)
  w = Identity (b)
}
)",
        {{{"x", ramp({2, 4})}}, {{"x", ramp({5, 4})}}, {{"x", ramp({0, 4})}}});
}

// What is added to a sum may lie where the result goes, but not where it is multiplied, too: other
// elements of it are still to be read there.
TEST(Specialise, ResidualsThatAreTheInputItself) {
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[1,16,9,9] x) => (float[1,16,9,9] y) <int64[4] depthwise = {16, 1, 3, 3}, int64[4] whole = {16, 16, 3, 3}> {
  w = ConstantOfShape <value: tensor = float[1] {0.5}> (depthwise)
  v = ConstantOfShape <value: tensor = float[1] {0.25}> (whole)
  a = Relu (x)
  c = Conv <group = 16, pads = [1, 1, 1, 1]> (a, w)
  b = Add (c, a)
  d = Conv <dilations = [2, 2], pads = [2, 2, 2, 2]> (b, v)
  e = Add (d, b)
  y = Neg (e)
}
)",
        {{{"x", ramp({1, 16, 9, 9})}}});
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N,32] x) => (float[N,32] y) <int64[2] shape = {32, 32}> {
  w = ConstantOfShape <value: tensor = float[1] {0.5}> (shape)
  a = Relu (x)
  p = MatMul (a, w)
  b = Add (p, a)
  y = Neg (b)
}
)",
        {{{"x", ramp({40, 32})}}, {{"x", ramp({3, 32})}}});
}

Tensor integers(std::initializer_list<int64_t> values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return Tensor::of<int64_t>(DType::kInt64, dims, std::vector<int64_t>(values));
}

// Axes and counts decide which kernel runs, and how: other ones may come with each run.
TEST(Specialise, ValuesThatChooseKernels) {
  const std::vector<std::vector<NamedValue>> given = {
      {{"x", ramp({3, 4, 5})}, {"axes", integers({0})}},
      {{"x", ramp({3, 4, 5})}, {"axes", integers({1})}},
      {{"x", ramp({3, 4, 5})}, {"axes", integers({-1})}},
      {{"x", ramp({3, 4, 5})}, {"axes", integers({0, 2})}},
      {{"x", ramp({3, 4, 5})}, {"axes", integers({1, 2})}},
      {{"x", ramp({2, 2, 2})}, {"axes", integers({1, 2})}}};
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[A,B,C] x, int64[N] axes) => (float y, float z) {
  a = Neg (x)
  y = ReduceMax (a, axes)
  b = Relu (y)
  z = Neg (b)
}
)",
        given);
  // Computed, and the same while shapes differ or the other way round.
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[A,B,C] x, int64[N] axes) => (float y, float z, float v) {
  other = Neg (axes)
  back = Neg (other)
  a = Neg (x)
  b = ReduceMax (a, back)
  c = Relu (b)
  y = Neg (c)
  d = ReduceMin <keepdims = 0> (a, back)
  z = Neg (d)
  v = Neg (a)
}
)",
        given);
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[A,B] x, int64[1] k) => (float y, int64 places) {
  more = Neg (k)
  count = Abs (more)
  a = Neg (x)
  y, places = TopK (a, count)
}
)",
        {{{"x", ramp({3, 40})}, {"k", integers({2})}},
         {{"x", ramp({3, 40})}, {"k", integers({3})}},
         {{"x", ramp({3, 40})}, {"k", integers({40})}}});
}

TEST(Specialise, ValuesThatChooseKernelsOfALoop) {
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[A,B] x, int64[N] axes) => (float y, float z) <int64 trips = {2}, bool go = {1}> {
  around = Neg (axes)
  y, z = Loop (trips, go, x) <body = step (int64 i, bool was, float[P,Q] state) => (bool on, float[R,S] next, float[T,U] seen) <int64[1] one = {1}> {
    on = Identity (was)
    axis = Reshape (i, one)
    most = ReduceMax (state, axis)
    next = Sub (state, most)
    least = ReduceMin (state, around)
    seen = Neg (least)
  }>
}
)",
        {{{"x", ramp({3, 7})}, {"axes", integers({1})}},
         {{"x", ramp({3, 7})}, {"axes", integers({2})}},
         {{"x", ramp({3, 7})}, {"axes", integers({1})}}});
}

TEST(Specialise, ConcatAndSplitInOnePiece) {
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[1,C,3] x) => (float[1,D,3] y, float[1,E,3] p, float[1,F,3] q) {
  a = Relu (x)
  b = Neg (x)
  c = Relu (b)
  j = Concat <axis = 1> (a, c, x)
  k = Concat <axis = 1> (j, a)
  y = Relu (k)
  p, q = Split <axis = 1, num_outputs = 2> (j)
}
)",
        {{{"x", ramp({1, 2, 3})}}, {{"x", ramp({1, 4, 3})}}});
}

TEST(Specialise, SlicesAndIndices) {
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[3,N] x) => (float[N] y, float[2,N] z) <int64[1] one = {1}, int64[1] three = {3}, int64 two = {2}> {
  r = Relu (x)
  s = Slice (r, one, three)
  g = Gather <axis = 0> (r, two)
  y = Relu (g)
  z = Relu (s)
}
)",
        {{{"x", ramp({3, 2})}}, {{"x", ramp({3, 7})}}});
}

TEST(Specialise, SizesThatDependOnData) {
  const std::string_view text = R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x) => (float[M] y, int64[K] s) {
  n = NonZero (x)
  last = Constant <value_ints: ints = [-1]> ()
  f = Reshape (n, last)
  g = Gather (x, f)
  r = Relu (g)
  h = Neg (r)
  y = Relu (h)
  s = Shape (g)
}
)";
  auto values = [](std::initializer_list<float> list) {
    const int64_t dims[] = {static_cast<int64_t>(list.size())};
    return RunValue(Tensor::of<float>(DType::kFloat32, dims, {list.begin(), list.size()}));
  };
  agree(text, {{{"x", values({1, 0, -2, 3})}},
               {{"x", values({0, 0, 0, 5})}},
               {{"x", values({1, 2, 3, 4})}},
               {{"x", values({0, 0, 0, 0})}}});
}

TEST(Specialise, LoopsWhoseStateGrows) {
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (int64 n, bool go, float[K] x) => (float[M] y, float[P,Q] all) {
  y, all = Loop (n, go, x) <body = step (int64 i, bool c, float[A] s) => (bool c2, float[B] t, float[D] o) {
    c2 = Identity (c)
    r = Relu (s)
    t = Concat <axis = 0> (r, x)
    o = Relu (x)
  }>
}
)",
        {{{"n", Tensor::scalar_int64(4)},
          {"go", RunValue(Tensor::of<uint8_t>(DType::kBool, {}, std::vector<uint8_t>{1}))},
          {"x", ramp({3})}},
         {{"n", Tensor::scalar_int64(0)},
          {"go", RunValue(Tensor::of<uint8_t>(DType::kBool, {}, std::vector<uint8_t>{1}))},
          {"x", ramp({2})}}});
}

TEST(Specialise, BranchesThatGiveWhatLiesAround) {
  const std::string_view text = R"(
<ir_version: 10, opset_import: ["" : 21]>
main (bool c, float[N] x) => (float[M] y, float[N] z) {
  a = Relu (x)
  b = If (c) <then_branch = t () => (float[N] u) { u = Identity (a) },
              else_branch = e () => (float[K] v) { v = Concat <axis = 0> (a, x) }>
  z = Neg (a)
  d = Relu (z)
  y = Relu (b)
}
)";
  auto flag = [](uint8_t value) {
    return RunValue(Tensor::of<uint8_t>(DType::kBool, {}, std::span<const uint8_t>(&value, 1)));
  };
  agree(text, {{{"c", flag(1)}, {"x", ramp({4})}},
               {{"c", flag(0)}, {"x", ramp({4})}},
               {{"c", flag(1)}, {"x", ramp({4})}}});
}

TEST(Specialise, SequencesKeepWhatTheyWereGiven) {
  agree(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x) => (float[M] y) {
  a = Relu (x)
  s = SequenceConstruct (a, x)
  b = Relu (a)
  c = Neg (b)
  d = Relu (c)
  t = SequenceInsert (s, d)
  y = ConcatFromSequence <axis = 0> (t)
}
)",
        {{{"x", ramp({6})}}, {{"x", ramp({3})}}});
}

TEST(Specialise, InputsWithDefaults) {
  const std::string_view text = R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x, float[1] b = {2}) => (float[N] y) { a = Add (x, b)  y = Relu (a) }
)";
  const float three = 3;
  const int64_t one[] = {1};
  const RunValue given = Tensor::of<float>(DType::kFloat32, one, {&three, 1});
  agree(text, {{{"x", ramp({4})}}, {{"x", ramp({4})}, {"b", given}}, {{"x", ramp({4})}}});
}

TEST(Specialise, FunctionsTakeTheirAttributesFromEachCall) {
  agree(R"(
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
main (float[N] x) => (float[N] y, float[N] z) {
  y = local.scale <factor = 3.0> (x)
  z = local.scale <factor = 5.0> (y)
}
<domain: "local", opset_import: ["" : 21]>
scale <factor> (a) => (b) { c = Constant <value_float: float = @factor> ()  d = Relu (a)  b = Mul (d, c) }
)",
        {{{"x", ramp({4})}}, {{"x", ramp({2})}}});
}

TEST(Specialise, WritesOutputsWhereTheCallerWants) {
  auto session = session_for(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x) => (float[N] y, float[N] z) { a = Neg (x)  y = Relu (a)  z = Relu (x) }
)");
  ASSERT_TRUE(session);
  std::vector<float> memory(4, 99);
  const int64_t dims[] = {4};
  RunOptions options;
  options.outputs = {Tensor::view(DType::kFloat32, dims, std::as_bytes(std::span(memory)), nullptr),
                     Tensor()};
  for (int i = 0; i < 3; ++i) {
    std::fill(memory.begin(), memory.end(), 99.f);
    auto outputs = session->run({{"x", ramp({4}, -1)}}, options);
    ASSERT_TRUE(outputs);
    EXPECT_EQ(static_cast<const void*>((*outputs)[0].tensor().bytes().data()), memory.data());
    EXPECT_EQ(memory[0], 1);
    EXPECT_EQ(memory[3], 0);
  }
}

TEST(Specialise, UsesTheRowsOfKernels) {
  auto session = session_for(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x) => (float[N] y) { y = Relu (x) }
)");
  ASSERT_TRUE(session);
  for (int i = 0; i < 2; ++i) {
    Profile profile;
    RunOptions options;
    options.profile = &profile;
    ASSERT_TRUE(session->run({{"x", ramp({4})}}, options));
    ASSERT_EQ(profile.events.size(), 1u);
    EXPECT_STRNE(profile.events[0].kernel, "reference");
  }
}

TEST(Specialise, CancelsARun) {
  auto session = session_for(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (int64 n, bool go, float[K] x) => (float[M] y) {
  y = Loop (n, go, x) <body = step (int64 i, bool c, float[A] s) => (bool c2, float[B] t) {
    c2 = Identity (c)
    t = Neg (s)
  }>
}
)");
  ASSERT_TRUE(session);
  std::atomic<bool> cancelled{false};
  RunOptions options;
  options.cancelled = &cancelled;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled = true;
  });
  const uint8_t yes = 1;
  auto outputs = session->run({{"n", Tensor::scalar_int64(INT64_MAX)},
                               {"go", RunValue(Tensor::of<uint8_t>(DType::kBool, {}, {&yes, 1}))},
                               {"x", ramp({3})}},
                              options);
  other.join();
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.error().kind, ErrorKind::kResource);
  EXPECT_NE(outputs.error().message.find("cancelled"), std::string::npos);
}

TEST(Specialise, KeepsThePlansOfManySmallShapesOrOfFewLargeOnes) {
  for (const auto& [bytes, kept] : {std::pair<size_t, size_t>{1 << 10, 256}, {1 << 29, 16}}) {
    GraphPlan plan;
    plan.inputs = {0};
    plan.slot_count = 1;
    Trace trace;
    trace.slots.resize(1);
    trace.slots[0].from = TraceSlot::From::kTensor;
    trace.slots[0].bytes = bytes;
    SpecialisationCache cache(0);
    Signature signature;
    for (int64_t shape = 0; shape < 300; ++shape) {
      signature.words = {shape};
      signature.finish();
      cache.insert(plan, signature, trace, {});
    }
    EXPECT_EQ(cache.size(), kept);
    EXPECT_NE(cache.find(signature), nullptr);
    signature.words = {0};
    signature.finish();
    EXPECT_EQ(cache.find(signature), nullptr);
  }
}

TEST(Specialise, StaysFlatOverManyShapes) {
  auto session = session_for(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N,M] x) => (float[N,M] y, int64[2] s) {
  a = Relu (x)
  b = Neg (a)
  c = Relu (b)
  d = Add (c, a)
  y = Relu (d)
  s = Shape (y)
}
)");
  ASSERT_TRUE(session);
  auto run = [&](int from, int to) {
    for (int i = from; i < to; ++i)
      ASSERT_TRUE(session->run({{"x", ramp({1 + i % 61, 1 + i % 97})}}));
  };
  run(0, 500);
  drop_kept_blocks();
  const uint64_t before = live_tensor_bytes();
  run(500, 10000);
  drop_kept_blocks();
  // Plans are kept, but one arena serves them all.
  EXPECT_LT(live_tensor_bytes(), before + (uint64_t{2} << 20));
  session.reset();
  EXPECT_LT(live_tensor_bytes(), uint64_t{64} << 10);
}

TEST(Specialise, ManyThreadsOnOneSession) {
  auto session = session_for(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x) => (float[N] y) {
  a = Relu (x)
  b = Neg (a)
  c = Add (b, x)
  y = Neg (c)
}
)");
  ASSERT_TRUE(session);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        const int64_t size = 1 + (t + i) % 7;
        auto outputs = session->run({{"x", ramp({size}, static_cast<float>(-t))}});
        if (!outputs || (*outputs)[0].tensor().size() != size) {
          ++wrong;
          continue;
        }
        for (int64_t k = 0; k < size; ++k) {
          const double x = -t + 0.5 * static_cast<double>(k);
          if ((*outputs)[0].tensor().get_double(k) != std::max(x, 0.0) - x) ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tombolo
