// Batches that go through stretches of nodes a few images at a time give what whole batches give.

#include "runtime/batch_slices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "runtime/profile.h"
#include "session_for.h"

namespace tombolo {
namespace {

// In blocks of 16 channels the convolution reads and writes 18 KiB of an image.
constexpr int64_t kChannels = 12, kSide = 12;

std::string numbers(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string((i * 37 % 29 - 14) * 0.03125);
  return text;
}

/// A convolution of x to c, then `body`, which makes y.
std::string network(const std::string& body, const std::string& y = "y") {
  return "<ir_version: 10, opset_import: [\"\" : 21]>\n"
         "main (float[N, 12, 12, 12] x) => (" +
         y +
         ") {\n"
         "w = Constant <value = float[12, 12, 3, 3] {" +
         numbers(1296) +
         "}> ()\n"
         "c = Conv <pads = [1, 1, 1, 1]> (x, w)\n" +
         body + "\n}";
}

Tensor batch(int64_t count, int64_t seed = 0) {
  const std::vector<int64_t> dims = {count, kChannels, kSide, kSide};
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<int64_t>(i) * 7919 + seed * 31) % 1013 - 506) / 256;
  return Tensor::of<float>(DType::kFloat32, dims, values);
}

void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(Dims(got.dims()), Dims(want.dims())) << what;
  double apart = 0, greatest = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    apart = std::max(apart, std::fabs(got.get_double(i) - want.get_double(i)));
    greatest = std::max(greatest, std::fabs(want.get_double(i)));
  }
  EXPECT_LE(apart, 1e-5 * greatest) << what;
}

SessionOptions cut_to(int64_t room) {
  SessionOptions options;
  options.batch_room = room;
  return options;
}

SessionOptions reference() {
  SessionOptions options;
  options.reference = true;
  options.optimise = 0;
  return options;
}

/// Runs a batch of three twice; the calls of the node that makes `output`, in a run.
size_t calls_for(Text output, const std::string& text, int64_t room) {
  auto cut = session_for(text, cut_to(room)), plain = session_for(text, reference());
  if (!cut || !plain) return 0;
  size_t calls = 0;
  for (int round = 0; round < 2; ++round) {
    Profile profile;
    RunOptions profiled;
    profiled.profile = &profile;
    const std::vector<NamedValue> inputs = {{"x", RunValue(batch(3, round))}};
    const auto got = cut->run(inputs, profiled), want = plain->run(inputs);
    EXPECT_TRUE(got) << got.error().where << ": " << got.error().message;
    EXPECT_TRUE(want) << want.error().message;
    if (!got || !want) return 0;
    for (size_t i = 0; i < want->size(); ++i)
      expect_near((*got)[i].tensor(), (*want)[i].tensor(), "output " + std::to_string(i));
    calls = 0;
    for (const ProfileEvent& event : profile.events)
      for (const Value* made : event.node->outputs())
        calls += made != nullptr && made->name() == output ? 1 : 0;
  }
  return calls;
}

TEST(BatchSlices, OperatorsThatKeepImagesApart) {
  for (const char* body : {
           "y = MaxPool <kernel_shape = [2, 2]> (c)",
           "y = Softmax <axis = 1> (c)",
           "y = LogSoftmax (c)",
           "n = Exp (c) y = Concat <axis = 1> (c, n)",
           "a = Constant <value = int64[2] {2, 3}> () r = ReduceMean <keepdims = 0> (c, a) "
           "y = Softmax (r)",
           "a = Constant <value = int64[1] {-3}> () y = ReduceMax (c, a)",
           "y = Transpose <perm = [0, 2, 3, 1]> (c)",
           "s = Constant <value = int64[2] {0, -1}> () r = Reshape (c, s) y = Softmax (r)",
           "s = Constant <value = int64[2] {-1, 1728}> () r = Reshape (c, s) y = Softmax (r)",
           "f = Flatten (c) y = Softmax (f)",
           "s = Constant <value = int64[1] {0}> () e = Constant <value = int64[1] {2}> () "
           "a = Constant <value = int64[1] {1}> () r = Slice (c, s, e, a) y = Softmax (r)",
           "p, q = Split <axis = 1, num_outputs = 2> (c) y = Mul (p, q)",
           "p = Constant <value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}> () y = Pad (c, p)",
           "s = Constant <value = float[4] {1, 1, 2, 2}> () y = Resize <mode = \"linear\"> (c, , "
           "s)",
           "i = Constant <value = int64[2] {2, 0}> () y = Gather <axis = 1> (c, i)",
           "s = Constant <value = float[12] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> () "
           "y = LayerNormalization (c, s)",
           "s = Constant <value = float[12] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> () "
           "y = InstanceNormalization (c, s, s)",
           "e = Exp (c) k = Constant <value = float[1, 1, 12, 1] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "
           "11, "
           "12}> () y = Div (e, k)",
           "m = Constant <value = int64[1] {0}> () s = ReduceMean (x, m) y = Max (c, s)",
           "g = GlobalAveragePool (c) y = Mul (c, g)",
           "y = ArgMax <axis = 1> (c)",
           "y = DepthToSpace <blocksize = 2> (c)",
           "y = MatMul (c, x)",
       })
    EXPECT_EQ(calls_for("y", network(body), 1), 3u) << body;
}

TEST(BatchSlices, OperatorsThatMixImages) {
  for (const char* body : {
           "y = Softmax <axis = 0> (c)",
           "n = Exp (c) y = Concat <axis = 0> (c, n)",
           "a = Constant <value = int64[1] {0}> () y = ReduceMean (c, a)",
           "a = Constant <value = int64[2] {1, -4}> () y = ReduceMax (c, a)",
           "y = ReduceMean (c)",
           "y = Transpose <perm = [1, 0, 2, 3]> (c)",
           "s = Constant <value = int64[2] {3, -1}> () r = Reshape (c, s) y = Softmax (r)",
           "s = Constant <value = int64[2] {1728, -1}> () r = Reshape (c, s) y = Softmax (r)",
           "f = Flatten <axis = 2> (c) y = Softmax (f)",
           "s = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] {3}> () "
           "a = Constant <value = int64[1] {0}> () y = Slice (c, s, e, a)",
           "p, q, r = Split <axis = 0, num_outputs = 3> (c) y = Sum (p, q, r)",
           "p = Constant <value = int64[8] {1, 0, 0, 0, 0, 0, 0, 0}> () y = Pad (c, p)",
           "s = Constant <value = float[4] {2, 1, 1, 1}> () y = Resize (c, , s)",
           "i = Constant <value = int64[2] {2, 0}> () y = Gather (c, i)",
           "e = Exp (c) k = Constant <value = float[3, 1, 1, 1] {1, 2, 3}> () y = Div (e, k)",
           "m, y = MaxPool <kernel_shape = [2, 2]> (c)",
           "y = ArgMax <axis = 0> (c)",
           "y = LpNormalization <axis = 0> (c)",
           "k = Constant <value_int = 0> () y = CumSum (c, k)",
           "q, s, z = DynamicQuantizeLinear (c) y = DequantizeLinear (q, s, z)",
       })
    EXPECT_EQ(calls_for("y", network(body), 1), 1u) << body;
}

TEST(BatchSlices, WhatIsCutAndWhatIsNot) {
  const std::string chain =
      network("e = Exp (c) m = MaxPool <kernel_shape = [2, 2]> (e) y = Neg (m)");
  EXPECT_EQ(calls_for("y", chain, 1), 3u);
  EXPECT_EQ(calls_for("y", chain, 16 << 10), 3u);
  EXPECT_EQ(calls_for("y", chain, 64 << 10), 1u) << "three images are not more than twice as many";
  EXPECT_EQ(calls_for("y", chain, 0), 1u) << "small images stay near anyhow";
}

TEST(BatchSlices, ValuesAcrossTheEndsOfStretches) {
  // Given out from within, read behind the stretch, needed by two stretches.
  const std::string two = "y, z";
  EXPECT_EQ(
      calls_for("z",
                network("e = Exp (c) y = MaxPool <kernel_shape = [2, 2]> (e) z = Neg (e)", two), 1),
      3u);
  const std::string behind = network(
      "e = Exp (c) t = Softmax <axis = 0> (e) y = Add (t, c) k = MaxPool <kernel_shape = [3, 3]> "
      "(e) "
      "z = Softmax (k)",
      two);
  EXPECT_EQ(calls_for("z", behind, 1), 3u);
  EXPECT_EQ(calls_for("y", behind, 1), 1u);
  const std::string ends = network("i = Identity (c) y = Exp (i) z = Identity (x)", two);
  EXPECT_EQ(calls_for("y", ends, 1), 3u);
}

TEST(BatchSlices, AnyNumberOfImagesOnOneSession) {
  const std::string text = network(
      "e = Exp (c) p = MaxPool <kernel_shape = [2, 2]> (e) f = Flatten (p) y = Softmax (f)");
  const auto cut = session_for(text, cut_to(40 << 10)), plain = session_for(text, reference());
  ASSERT_TRUE(cut && plain);
  for (const int64_t count : {7, 5, 1, 7, 4, 6, 2, 7}) {
    const std::vector<NamedValue> inputs = {{"x", RunValue(batch(count, count))}};
    const auto got = cut->run(inputs), again = cut->run(inputs), want = plain->run(inputs);
    ASSERT_TRUE(got && again && want);
    expect_near((*got)[0].tensor(), (*want)[0].tensor(), std::to_string(count));
    EXPECT_EQ((*got)[0].tensor(), (*again)[0].tensor()) << "the same bits in every run";
  }
}

TEST(BatchSlices, WritesToTheCallersMemoryAndRunsOnManyThreads) {
  const std::string text = network("y = Exp (c)", "float[N, 12, 12, 12] y");
  const auto cut = session_for(text, cut_to(1));
  ASSERT_TRUE(cut);
  const auto whole = cut->run({{"x", RunValue(batch(9))}});
  ASSERT_TRUE(whole);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        const std::vector<int64_t> dims = {9, kChannels, kSide, kSide};
        auto target = Tensor::allocate(DType::kFloat32, dims);
        RunOptions options;
        options.outputs = {*target};
        const auto got = cut->run({{"x", RunValue(batch(9))}}, options);
        ASSERT_TRUE(got);
        EXPECT_EQ((*got)[0].tensor().bytes().data(), target->bytes().data());
        EXPECT_EQ(*target, (*whole)[0].tensor());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tombolo
