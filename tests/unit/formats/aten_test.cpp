#include <gtest/gtest.h>

#include <limits>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

// A place that is written must be a tensor: a number reads as one, but nothing holds it.
TEST(Aten, RefusesToWriteRunningStatisticsThatAreNumbers) {
  for (const char* overload : {"native_batch_norm", "batch_norm"}) {
    Model model = Model::create(23);
    AtenContext c(model);
    const Ref x = c.cell(
        c.b.input("x", DType::kFloat32, SymShape{SymDim(2), SymDim(3), SymDim(4), SymDim(4)}));
    const Ref var = c.cell(c.b.input("var", DType::kFloat32, SymShape{SymDim(3)}));
    std::vector<Arg> args = {Arg(x),   Arg(),     Arg(),    Arg(1),
                             Arg(var), Arg(true), Arg(0.1), Arg(1e-5)};
    if (std::string_view(overload) == "batch_norm") args.emplace_back(false);
    const auto results = c.call(overload, std::move(args));
    ASSERT_FALSE(results.ok()) << overload;
    EXPECT_NE(results.error().message.find("\"running_mean\" is an integer"), std::string::npos)
        << results.error().message;
  }
}

TEST(Aten, RefusesArgumentsOfOtherKindsBesideComplexTensors) {
  const auto z = [](AtenContext& c, int64_t n) {
    return Arg(c.cell(c.b.input("z", DType::kFloat32, SymShape{SymDim(n), SymDim(n), SymDim(2)}),
                      DType::kComplex64));
  };
  const std::vector<std::pair<const char*, std::vector<Arg>>> calls = {
      {"rms_norm", {Arg("text"), Arg::ints(std::vector<int64_t>{3}), Arg("z"), Arg()}},
      {"pairwise_distance", {Arg(), Arg("z")}},
      {"cholesky_solve", {Arg("text"), Arg("z")}},
      {"linalg_tensorinv", {Arg("z"), Arg(9)}},
      {"linalg_tensorinv", {Arg("z"), Arg(-3)}},
      {"broadcast_tensors", {Arg(std::vector<Arg>{Arg("z"), Arg()})}},
      {"meshgrid", {Arg(std::vector<Arg>{Arg(), Arg()})}},
      {"cartesian_prod", {Arg(std::vector<Arg>{Arg()})}},
      {"linalg_multi_dot", {Arg(std::vector<Arg>{Arg(), Arg(1)})}}};
  for (const auto& [overload, given] : calls) {
    Model model = Model::create(23);
    AtenContext c(model);
    std::vector<Arg> args = given;
    for (Arg& arg : args)
      if (arg.text == "z") arg = z(c, 3);
    EXPECT_FALSE(c.call(overload, std::move(args)).ok()) << overload;
  }
}

TEST(Aten, RefusesNumbersBeyond64Bits) {
  const std::vector<std::pair<const char*, std::vector<Arg>>> calls = {
      {"arange.start_step", {Arg(0.0), Arg(1.0), Arg(0.0)}},
      {"arange.start_step", {Arg(-1e300), Arg(1e300), Arg(1e-300)}},
      {"_operator::pow", {Arg(10), Arg(40)}},
      {"math::floor", {Arg(1e300)}},
      {"math::trunc", {Arg(std::numeric_limits<double>::quiet_NaN())}},
      {"zeros", {Arg(std::vector<Arg>{Arg(1e300)})}},
  };
  for (const auto& [overload, args] : calls) {
    Model model = Model::create(23);
    AtenContext c(model);
    ASSERT_TRUE(AtenContext::knows(overload)) << overload;
    EXPECT_FALSE(c.call(overload, args).ok()) << overload;
  }
  EXPECT_EQ(to_int64(-0x1p63), INT64_MIN);
  EXPECT_EQ(to_int64(0x1p63), std::nullopt);
}

TEST(Aten, RefusesWindowsOfOtherDimensions) {
  const Arg none, one(1), three = Arg::ints(std::vector<int64_t>{1, 1, 1}),
                          empty(std::vector<Arg>{}), two = Arg::ints(std::vector<int64_t>{1, 1});
  const std::vector<std::pair<const char*, std::vector<Arg>>> calls = {
      // Weights of rank 1, which would have -1 axes to slide along.
      {"convolution", {Arg("x"), Arg("v"), none, one, one, one, Arg(false), one, one}},
      {"conv2d", {Arg("x"), Arg("x"), none, three, two, two, one}},
      {"conv2d", {Arg("x"), Arg("x"), none, two, empty, two, one}},
      {"conv2d", {Arg("x"), Arg("x"), none, empty, two, two, one}},
      {"max_pool2d", {Arg("x"), empty}},
      {"avg_pool2d", {Arg("x"), three}},
      {"im2col", {Arg("x"), empty, two, two, two}},
      {"im2col", {Arg("x"), Arg::ints(std::vector<int64_t>{1, int64_t{1} << 60}), two, two, two}},
      {"col2im", {Arg("x"), two, two, empty, empty, two}},
  };
  for (const auto& [overload, given] : calls) {
    Model model = Model::create(23);
    AtenContext c(model);
    std::vector<Arg> args = given;
    for (Arg& arg : args) {
      if (arg.text == "x")
        arg = Arg(c.cell(
            c.b.input("x", DType::kFloat32, SymShape{SymDim(1), SymDim(2), SymDim(3), SymDim(4)})));
      if (arg.text == "v") arg = Arg(c.cell(c.b.input("v", DType::kFloat32, SymShape{SymDim(3)})));
    }
    ASSERT_TRUE(AtenContext::knows(overload)) << overload;
    EXPECT_FALSE(c.call(overload, std::move(args)).ok()) << overload;
  }
}

}  // namespace
}  // namespace tombolo::pytorch
