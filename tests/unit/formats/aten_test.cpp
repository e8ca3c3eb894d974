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

// What is read beyond the end of a list or a shape, axes that are there twice, and counts that
// would be written out one by one: found by the aten fuzzer, or by reading for what it looks for.
TEST(Aten, RefusesListsAxesAndCountsThatDoNotFit) {
  const auto ints = [](std::vector<int64_t> list) { return Arg::ints(list); };
  const Arg none, zero(0), one(1), two(2), huge(int64_t{1} << 40), no(false), x("x"), v("v"),
      s("s"), empty(std::vector<Arg>{});
  const std::vector<std::pair<const char*, std::vector<Arg>>> calls = {
      {"fft_fftn", {x, ints({1, 2, 3, 4, 5})}},      // more lengths than axes
      {"fft_fft", {x, Arg(-3)}},                     // of no elements
      {"as_strided", {x, ints({2, 2}), ints({1})}},  // fewer strides than sizes
      {"adaptive_avg_pool2d", {v, ints({2, 2})}},    // a tensor of fewer axes than windows
      {"adaptive_max_pool2d", {x, ints({7, 3000000})}},
      {"slice.Tensor", {s, zero, one, Arg(SymInt(SymDim::symbol("n")))}},
      {"linalg_tensorinv", {x, huge}},
      {"diagonal", {x, zero, one, one}},
      {"diag_embed", {x, zero, one, one}},
      {"rot90", {x, one, ints({1, 1})}},
      {"flatten.using_ints", {x, two, one}},
      {"chunk", {x, zero}},
      {"chunk", {x, huge}},
      {"tensor_split.sections", {x, zero}},
      {"split.Tensor", {Arg("large"), one}},
      {"unbind.int", {Arg("large")}},
      {"unfold", {x, one, one, zero}},
      {"_chunk_cat", {Arg(std::vector<Arg>{x}), zero, zero}},
      {"combinations", {v, Arg(-1)}},
      {"tril_indices", {Arg(4000), Arg(4000)}},
      {"diff", {x, huge}},
      {"mvlgamma", {x, Arg(100000)}},
      {"polygamma", {Arg(100000), x}},
      {"histogram.bin_ct", {x, zero}},
      {"kaiser_window.beta", {two, Arg(true), Arg(1e9)}},
      {"zeros", {ints({2, -5})}},
      {"expand", {x, ints({2, 1, 2, 3, -4})}},
      {"view", {x, ints({-1, -7})}},
      {"arange.start_step", {zero, one, Arg(INT64_MIN)}},
      {"_native_multi_head_attention", {v, v, v, two, zero, v, v, v, v}},
  };
  for (const auto& [overload, given] : calls) {
    Model model = Model::create(23);
    AtenContext c(model);
    const auto tensor = [&](const SymShape& shape) {
      return Arg(c.cell(c.b.input("x", DType::kFloat32, shape)));
    };
    std::vector<Arg> args = given;
    const auto put = [&](Arg& arg, const auto& self) -> void {
      if (arg.text == "x") arg = tensor({SymDim(1), SymDim(2), SymDim(3), SymDim(4)});
      if (arg.text == "v") arg = tensor({SymDim(3)});
      if (arg.text == "s") arg = tensor({});
      if (arg.text == "large") arg = tensor({SymDim(int64_t{1} << 30)});
      for (Arg& part : arg.list) self(part, self);
    };
    for (Arg& arg : args) put(arg, put);
    ASSERT_TRUE(AtenContext::knows(overload)) << overload;
    const auto results = c.call(overload, std::move(args));
    ASSERT_FALSE(results.ok()) << overload;
    EXPECT_FALSE(results.error().message.empty()) << overload;
  }
  EXPECT_FALSE(read_beyond_end());
}

// A view that is one of its own arguments would hold itself for ever (found by LeakSanitizer).
TEST(Aten, LetsViewsInPlaceGo) {
  std::weak_ptr<Cell> left;
  {
    Model model = Model::create(23);
    AtenContext c(model);
    const Ref x = c.cell(c.b.input("x", DType::kFloat32, SymShape{SymDim(2), SymDim(3)}));
    const Ref y = c.cell(c.b.input("y", DType::kFloat32, SymShape{SymDim(3), SymDim(2)}));
    EXPECT_TRUE(c.call("view_as_", {Arg(x), Arg(y)}).ok());
    EXPECT_TRUE(c.call("view_as_", {Arg(x), Arg(x)}).ok());
    left = x;
  }
  EXPECT_TRUE(left.expired());
}

}  // namespace
}  // namespace tombolo::pytorch
