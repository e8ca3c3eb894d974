// The C interface, and the C++ header over it.

#include <gtest/gtest.h>

#include <thread>

#include "tombolo/tombolo.hpp"

namespace {

const char kModel[] = R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x, float[N] y) => (float[N] sum, int64[K] places) {
  a = Add (x, y)
  sum = Relu (a)
  n = NonZero (sum)
  flat = Constant <value_ints: ints = [-1]> ()
  places = Reshape (n, flat)
}
)";

tombolo::Session open() { return tombolo::Session(kModel, sizeof kModel - 1); }

TEST(CApi, ReadsFromMemoryAndRuns) {
  const tombolo::Session session = open();
  ASSERT_EQ(session.input_count(), 2u);
  EXPECT_EQ(session.input_type(0), "float[N]");
  const std::vector<float> x = {1, -2, 3}, y = {1, 1, -4};
  for (int i = 0; i < 3; ++i) {
    const auto outputs = session.run({tombolo::tensor("x", x, {3}), tombolo::tensor("y", y, {3})});
    EXPECT_EQ(outputs["sum"].data<float>()[0], 2);
    EXPECT_EQ(outputs["sum"].data<float>()[1], 0);
    EXPECT_EQ(outputs["places"].size<int64_t>(), 1u);
    EXPECT_THROW(outputs["sum"].data<double>(), tombolo::Failure);
    EXPECT_THROW(outputs["other"], tombolo::Failure);
  }
}

TEST(CApi, WritesToBoundMemory) {
  const tombolo::Session session = open();
  const std::vector<float> x = {1, -2, 3}, y = {1, 1, 4};
  std::vector<float> sum(3);
  std::vector<int64_t> places(8);
  const std::vector<tombolo::TensorRef> inputs = {tombolo::tensor("x", x, {3}),
                                                  tombolo::tensor("y", y, {3})};
  for (int i = 0; i < 3; ++i) {
    std::fill(sum.begin(), sum.end(), -1.f);
    const auto outputs = session.run(inputs, {tombolo::tensor("sum", sum, {3})});
    EXPECT_EQ(outputs["sum"].raw(), sum.data());
    EXPECT_EQ(sum, (std::vector<float>{2, 0, 7}));
  }
  // A shape that is not known before: memory of a certain size.
  tombolo_binding binding = {};
  binding.struct_size = sizeof binding;
  binding.name = "places";
  binding.dtype = 7;
  binding.rank = -1;
  binding.data = places.data();
  binding.bytes = places.size() * sizeof(int64_t);
  EXPECT_THROW(session.run(inputs, {tombolo::tensor("sum", sum, {2})}), tombolo::Failure);
  try {
    session.run(inputs, {tombolo::tensor("none", sum, {3})});
    FAIL();
  } catch (const tombolo::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("none"), std::string::npos) << failure.what();
  }
  try {
    tombolo::Session("there/is/none.onnx");
    FAIL();
  } catch (const tombolo::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("none.onnx"), std::string::npos) << failure.what();
  }

  tombolo_session* raw = nullptr;
  tombolo_error* error = nullptr;
  ASSERT_EQ(tombolo_session_open_memory(kModel, sizeof kModel - 1, nullptr, &raw, &error),
            TOMBOLO_OK);
  const int64_t dims[] = {3};
  const tombolo_tensor given[] = {{sizeof(tombolo_tensor), "x", 1, 1, dims, x.data(), 12},
                                  {sizeof(tombolo_tensor), "y", 1, 1, dims, y.data(), 12}};
  tombolo_outputs* outputs = nullptr;
  ASSERT_EQ(tombolo_session_run_bound(raw, given, 2, &binding, 1, nullptr, &outputs, &error),
            TOMBOLO_OK);
  EXPECT_EQ(places[0], 0);
  EXPECT_EQ(places[1], 2);
  tombolo_outputs_destroy(outputs);
  binding.bytes = 8;
  EXPECT_EQ(tombolo_session_run_bound(raw, given, 2, &binding, 1, nullptr, &outputs, &error),
            TOMBOLO_USAGE);
  tombolo_error_destroy(error);
  tombolo_session_destroy(raw);
}

TEST(CApi, OutputsNeverPointIntoInputs) {
  const char text[] = R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[N] x) => (float[N] y) { y = Identity (x) }
)";
  const tombolo::Session session(text, sizeof text - 1);
  const std::vector<float> x = {1, 2};
  for (int i = 0; i < 3; ++i) {
    const auto outputs = session.run({tombolo::tensor("x", x, {2})});
    EXPECT_NE(outputs[0].raw(), x.data());
    EXPECT_EQ(outputs[0].data<float>()[1], 2);
  }
}

TEST(CApi, TellsStructsOfOlderCallersFromNone) {
  tombolo_session_options options = {};
  tombolo_session* session = nullptr;
  tombolo_error* error = nullptr;
  EXPECT_EQ(tombolo_session_open_memory(kModel, sizeof kModel - 1, &options, &session, &error),
            TOMBOLO_USAGE);  // struct_size is 0
  tombolo_error_destroy(error);
  options.struct_size = offsetof(tombolo_session_options, seed);  // an older caller
  EXPECT_EQ(tombolo_session_open_memory(kModel, sizeof kModel - 1, &options, &session, &error),
            TOMBOLO_OK);
  tombolo_session_destroy(session);
}

TEST(CApi, StopsRunsFromAnotherThread) {
  const char text[] = R"(
<ir_version: 10, opset_import: ["" : 21]>
main (int64 n, bool go, float[N] x) => (float[N] y) {
  y = Loop (n, go, x) <body = step (int64 i, bool c, float[A] s) => (bool c2, float[B] t) {
    c2 = Identity (c)
    t = Neg (s)
  }>
}
)";
  const tombolo::Session session(text, sizeof text - 1);
  const int64_t times = INT64_MAX;
  const bool go = true;
  const std::vector<float> x = {1};
  tombolo::Stop stop;
  tombolo::RunOptions options;
  options.stop = &stop;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop.request();
  });
  tombolo_status status = TOMBOLO_OK;
  try {
    session.run({tombolo::tensor("n", &times, {}), tombolo::tensor("go", &go, {}),
                 tombolo::tensor("x", x, {1})},
                {}, options);
  } catch (const tombolo::Failure& failure) {
    status = failure.status();
  }
  other.join();
  EXPECT_EQ(status, TOMBOLO_RESOURCE);
}

}  // namespace
