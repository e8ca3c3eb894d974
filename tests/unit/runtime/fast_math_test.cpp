// The option fast_math: products of bf16 with tiles, with dot products, and where the processor
// (or TOMBOLO_ISA) has neither.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ir/text/parser.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/profile.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

/// A graph main(x[, b]) => (y), what it is given, and the kernel that it should run on.
struct Bf16Case {
  std::string parameters, constants, nodes;
  std::vector<NamedValue> inputs;
  std::string kernel;
  int opset = 21;
};

class FastMath : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_bf16_dot()) GTEST_SKIP() << "no bf16 on this machine";
    let_bf16_pay(true);
  }
  void TearDown() override {
    let_bf16_pay(false);
    limit_extras(Extras::kTiles);
    set_thread_count(0);
  }

  /// Whole numbers, whose products bf16 has exactly and whose sums floats have; or any.
  float number() {
    return whole_ ? static_cast<float>(static_cast<int>(engine_() % 17) - 8) : normal_(engine_);
  }
  Tensor tensor(const std::vector<int64_t>& dims) {
    std::vector<float> values(static_cast<size_t>(element_count(dims)));
    for (float& value : values) value = number();
    return Tensor::of<float>(DType::kFloat32, dims, values);
  }
  static std::string shape(const std::vector<int64_t>& dims) {
    std::string text = "float[";
    for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(dims[i]);
    return text + "]";
  }
  std::string constant(const std::string& name, const std::vector<int64_t>& dims) {
    std::string text = shape(dims) + " " + name + " = {";
    for (int64_t i = 0; i < element_count(dims); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(number());
    return text + "}";
  }

  static std::unique_ptr<Session> session(const Bf16Case& c, const SessionOptions& options) {
    auto model = parse_text("<ir_version: 11, opset_import: [\"\" : " + std::to_string(c.opset) +
                            "]>\nmain (" + c.parameters + ") => (y) <" + c.constants + "> {\n" +
                            c.nodes + "\n}\n");
    EXPECT_TRUE(model) << model.error().message;
    if (!model) return nullptr;
    auto made = Session::create(*std::move(model), options);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : nullptr;
  }

  std::vector<float> run(const Bf16Case& c, bool reference, bool fast_math,
                         const std::string& kernel) {
    SessionOptions options;
    options.reference = reference;
    options.fast_math = fast_math;
    if (reference) options.optimise = 0;
    const auto made = session(c, options);
    if (!made) return {};
    Profile profile;
    RunOptions how;
    how.profile = &profile;
    std::vector<float> values;
    for (int round = 0; round < 2; ++round) {
      profile = {};
      auto got = made->run(c.inputs, how);
      EXPECT_TRUE(got) << got.error().message;
      if (!got) return {};
      const Tensor& y = (*got)[0].tensor();
      std::vector<float> now(y.data<float>(), y.data<float>() + y.size());
      if (round == 1) {
        EXPECT_EQ(now, values) << c.nodes;
      }
      values = std::move(now);
    }
    bool found = kernel.empty(), rounds = false;
    for (const auto& node : profile.events) {
      found |= kernel == node.kernel;
      rounds |= std::string(node.kernel).find("bf16") != std::string::npos;
    }
    EXPECT_TRUE(found) << kernel << "\n" << c.nodes;
    EXPECT_EQ(rounds, kernel.find("bf16") != std::string::npos) << c.nodes;
    return values;
  }

  /// On whole numbers tiles and dot products give the reference's bits; without either the option
  /// changes nothing.
  void expect_exact(const Bf16Case& c) {
    const std::vector<float> want = run(c, true, false, "");
    for (const Extras extras : {Extras::kTiles, Extras::kDot}) {
      limit_extras(extras);
      EXPECT_EQ(run(c, false, true, c.kernel), want) << c.nodes << " " << static_cast<int>(extras);
    }
    const std::vector<float> plain = run(c, false, false, "");
    limit_extras(Extras::kNone);
    EXPECT_EQ(run(c, false, true, ""), plain) << c.nodes;
    EXPECT_EQ(run(c, false, false, ""), plain) << c.nodes;
    limit_extras(Extras::kTiles);
  }

  Bf16Case matmul(const std::vector<int64_t>& a, const std::vector<int64_t>& b, bool constant_b) {
    Bf16Case c{shape(a) + " x", "", "y = MatMul (x, b)", {{"x", tensor(a)}}, "matmul_bf16"};
    if (constant_b) {
      c.constants = constant("b", b);
    } else {
      c.parameters += ", " + shape(b) + " b";
      c.inputs.push_back({"b", tensor(b)});
    }
    return c;
  }

  struct Conv {
    int64_t batch, in, out, height, width, kernel_y, kernel_x, stride, dilation, pad;
    int64_t more = 0;  ///< padding behind a row and below the image
  };
  /// Between two others, so that a region of blocked channels is worth while.
  Bf16Case convolution(const Conv& w) {
    const std::vector<int64_t> x = {w.batch, w.in, w.height, w.width};
    return {shape(x) + " x",
            constant("w", {w.out, w.in, w.kernel_y, w.kernel_x}) + ", " + constant("b", {w.out}),
            "v = Conv <strides = [" + std::to_string(w.stride) + ", " + std::to_string(w.stride) +
                "], dilations = [" + std::to_string(w.dilation) + ", " +
                std::to_string(w.dilation) + "], pads = [" + std::to_string(w.pad) + ", " +
                std::to_string(w.pad) + ", " + std::to_string(w.pad + w.more) + ", " +
                std::to_string(w.pad + w.more) + "]> (x, w, b)\n y = Relu (v)",
            {{"x", tensor(x)}},
            "block_conv_bf16"};
  }

  static double relative_rms(const std::vector<float>& got, const std::vector<float>& want) {
    double error = 0, size = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error += std::pow(double{got[i]} - double{want[i]}, 2);
      size += std::pow(double{want[i]}, 2);
    }
    return std::sqrt(error / size);
  }

  bool whole_ = true;

 private:
  std::mt19937 engine_{11};
  std::normal_distribution<float> normal_;
};

TEST_F(FastMath, MatricesOfWholeNumbers) {
  struct Shape {
    int64_t m, k, n;
  };
  constexpr Shape kShapes[] = {{1, 16, 16},   {3, 17, 33},   {8, 64, 40},  {9, 31, 16},
                               {16, 32, 32},  {17, 33, 31},  {31, 80, 64}, {33, 100, 97},
                               {64, 129, 65}, {130, 70, 34}, {200, 16, 18}};
  for (const Shape& s : kShapes) {
    expect_exact(matmul({s.m, s.k}, {s.k, s.n}, true));
    if (s.m >= 16) expect_exact(matmul({s.m, s.k}, {s.k, s.n}, false));
  }
  expect_exact(matmul({5, 20, 48}, {5, 48, 40}, false));
  expect_exact(matmul({2, 3, 20, 48}, {3, 48, 40}, false));
  expect_exact(matmul({4, 20, 48}, {48, 40}, true));
}

TEST_F(FastMath, GemmOfWholeNumbers) {
  for (const bool constant_b : {true, false})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const std::vector<int64_t>& bias :
             {std::vector<int64_t>{37}, {}, {20, 1}, {20, 37}, {1}}) {
          const std::vector<int64_t> a =
              ta ? std::vector<int64_t>{50, 20} : std::vector<int64_t>{20, 50};
          const std::vector<int64_t> b =
              tb ? std::vector<int64_t>{37, 50} : std::vector<int64_t>{50, 37};
          Bf16Case c{shape(a) + " x",
                     constant("c", bias.empty() ? std::vector<int64_t>{1, 37} : bias),
                     "v = Gemm <transA = " + std::to_string(ta ? 1 : 0) +
                         ", transB = " + std::to_string(tb ? 1 : 0) +
                         ", alpha = 0.5, beta = 1.0> (x, b, c)\n y = Relu (v)",
                     {{"x", tensor(a)}},
                     ""};
          if (constant_b) {
            c.constants += ", " + constant("b", b);
          } else {
            c.parameters += ", " + shape(b) + " b";
            c.inputs.push_back({"b", tensor(b)});
          }
          const std::vector<float> want = run(c, true, false, "");
          for (const Extras extras : {Extras::kTiles, Extras::kDot}) {
            limit_extras(extras);
            SessionOptions options;
            options.fast_math = true;
            const auto made = session(c, options);
            ASSERT_TRUE(made);
            auto got = made->run(c.inputs);
            ASSERT_TRUE(got);
            const Tensor& y = (*got)[0].tensor();
            EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + y.size()), want)
                << c.nodes << static_cast<int>(extras);
          }
        }
}

TEST_F(FastMath, ConvolutionsOfWholeNumbers) {
  constexpr Conv kConvs[] = {{1, 32, 32, 5, 26, 3, 3, 1, 1, 1},
                             {2, 16, 48, 9, 7, 1, 1, 1, 1, 0},
                             {1, 24, 40, 13, 10, 3, 3, 2, 1, 1},
                             {1, 64, 17, 8, 11, 1, 1, 2, 1, 0},
                             {1, 17, 33, 12, 12, 5, 3, 1, 1, 2},
                             {2, 20, 16, 15, 9, 3, 5, 1, 2, 2},
                             {1, 40, 64, 9, 16, 3, 5, 3, 2, 3},
                             {1, 48, 16, 1, 1, 1, 1, 1, 1, 0},
                             {1, 16, 16, 4, 4, 4, 4, 1, 1, 0},
                             {1, 100, 36, 5, 7, 3, 3, 1, 1, 1},
                             // Without tiles of AMX by Winograd's of 2 x 2.
                             {1, 64, 64, 14, 14, 3, 3, 1, 1, 1},
                             {2, 96, 80, 7, 9, 3, 3, 1, 1, 1},
                             // Padding that rows share, and that they cannot.
                             {1, 32, 16, 6, 6, 1, 1, 1, 1, 1},
                             {2, 20, 16, 5, 7, 3, 5, 1, 1, 2},
                             {1, 20, 16, 5, 7, 3, 5, 1, 3, 3},
                             {2, 20, 16, 5, 7, 3, 5, 1, 1, 0, 1},
                             {2, 20, 16, 5, 7, 3, 5, 1, 1, 2, 1},
                             {1, 20, 16, 5, 7, 3, 5, 1, 1, 1, -1},
                             // Pixels that are multiplied where they lie.
                             {2, 33, 40, 14, 14, 1, 1, 1, 1, 0},
                             {1, 64, 130, 40, 37, 1, 1, 1, 1, 0},
                             {1, 300, 64, 13, 9, 1, 1, 2, 1, 0},
                             {1, 600, 600, 7, 7, 1, 1, 1, 1, 0},
                             // Columns of the kernel with phases of their own.
                             {1, 64, 256, 14, 14, 3, 3, 2, 1, 1},
                             {2, 40, 200, 13, 15, 3, 3, 2, 1, 1},
                             {1, 48, 300, 9, 11, 3, 5, 1, 2, 2},
                             {1, 33, 250, 17, 16, 3, 5, 3, 2, 3},
                             // Inputs that are not blocked.
                             {2, 3, 64, 23, 30, 7, 7, 2, 1, 3},
                             {1, 3, 16, 9, 40, 3, 3, 1, 1, 1},
                             {1, 4, 32, 17, 16, 4, 4, 4, 1, 0},
                             {1, 1, 20, 12, 35, 5, 9, 1, 1, 2, 1},
                             {2, 5, 24, 11, 12, 3, 3, 3, 1, 0}};
  for (const Conv& conv : kConvs) expect_exact(convolution(conv));
}

/// Its larger tiles save more than dot products of bf16 do, and magnify errors.
TEST_F(FastMath, WinogradStaysInFloats) {
  limit_extras(Extras::kDot);
  if (has_f16_products()) GTEST_SKIP() << "float16 has digits enough";
  for (const Conv& conv :
       {Conv{1, 32, 32, 14, 14, 3, 3, 1, 2, 2}, {1, 32, 32, 14, 14, 5, 5, 1, 1, 2}}) {
    const Bf16Case c = convolution(conv);
    EXPECT_EQ(run(c, false, true, "block_conv_f32"), run(c, false, false, "block_conv_f32"));
  }
  limit_extras(Extras::kTiles);
}

TEST_F(FastMath, WinogradOfFloat16StaysWithinTheRounding) {
  limit_extras(Extras::kDot);
  if (!has_f16_products()) GTEST_SKIP() << "no float16 on this machine";
  whole_ = false;
  constexpr Conv kConvs[] = {
      {1, 64, 48, 60, 58, 3, 3, 1, 1, 1},   {2, 40, 64, 14, 15, 3, 3, 1, 2, 2},
      {1, 256, 250, 14, 14, 3, 3, 1, 1, 1}, {1, 640, 512, 14, 14, 3, 3, 1, 1, 1},
      {1, 64, 64, 28, 28, 5, 5, 1, 1, 2},   {1, 96, 96, 17, 17, 1, 7, 1, 1, 3}};
  for (const Conv& w : kConvs)
    for (const bool residual : {false, true}) {
      Bf16Case c = convolution(w);
      if (w.kernel_y == 1) c.nodes.replace(c.nodes.find("pads"), 19, "pads = [0, 3, 0, 3]");
      const std::vector<int64_t> added = {w.batch, w.out, w.height, w.width};
      if (residual) {
        c.parameters += ", " + shape(added) + " r";
        c.inputs.push_back({"r", tensor(added)});
        c.nodes = c.nodes.substr(0, c.nodes.find('\n')) + "\n s = Add (v, r)\n y = Relu (s)";
      }
      const std::vector<float> want = run(c, true, false, "");
      std::vector<float> first;
      for (const int threads : {1, 2, 5}) {
        set_thread_count(threads);
        const std::vector<float> got = run(c, false, true, c.kernel);
        ASSERT_EQ(got.size(), want.size());
        if (first.empty()) first = got;
        EXPECT_EQ(got, first) << c.nodes << threads;
      }
      const double rms = relative_rms(first, want);
      EXPECT_LT(rms, 1e-2) << c.nodes << w.in;
      EXPECT_GT(rms, 1e-5) << "nothing was rounded";
      set_thread_count(0);
    }
  limit_extras(Extras::kTiles);
}

TEST_F(FastMath, ResidualsOfWholeNumbers) {
  Bf16Case c = convolution({2, 32, 32, 5, 18, 3, 3, 1, 1, 1});
  c.nodes = "v = Conv <pads = [1, 1, 1, 1]> (x, w, b)\n s = Add (v, x)\n y = Relu (s)";
  expect_exact(c);
  Bf16Case m = matmul({30, 64}, {64, 64}, true);
  m.nodes = "v = MatMul (x, b)\n y = Add (v, x)";
  m.kernel = "fused_matmul_bf16";
  expect_exact(m);
}

/// Each factor is off by 2^-9 of itself at most, so a sum is by 2^-8 of the sum of magnitudes, and
/// what floats add.
TEST_F(FastMath, ErrorsStayWithinTheRounding) {
  whole_ = false;
  for (const bool conv : {false, true})
    for (const int64_t k : {16, 100, 700}) {
      Bf16Case c =
          conv ? convolution({1, k, 40, 5, 18, 3, 3, 1, 1, 1}) : matmul({40, k}, {k, 50}, false);
      if (conv) c.nodes = c.nodes.substr(0, c.nodes.find('\n')) + "\n y = Identity (v)";
      Bf16Case magnitudes = c;
      const std::string weight = conv ? "w" : "b";
      magnitudes.nodes = "xa = Abs (x)\n wa = Abs (" + weight + ")\n" + c.nodes;
      if (conv) magnitudes.nodes += "\n";
      const auto replace = [&](const std::string& from, const std::string& to) {
        magnitudes.nodes.replace(magnitudes.nodes.rfind(from), from.size(), to);
      };
      replace(conv ? "(x, w, b)" : "(x, b)", conv ? "(xa, wa, b)" : "(xa, wa)");
      if (conv) c.constants = c.constants.substr(0, c.constants.rfind(", float["));
      if (conv) magnitudes.constants = c.constants;
      const auto drop_bias = [&](std::string& nodes) {
        const size_t at = nodes.rfind(", b)");
        if (conv && at != std::string::npos) nodes.replace(at, 4, ")");
      };
      drop_bias(c.nodes);
      drop_bias(magnitudes.nodes);
      const std::vector<float> want = run(c, true, false, ""),
                               sums = run(magnitudes, true, false, "");
      const double depth = static_cast<double>(conv ? k * 9 : k);
      for (const Extras extras : {Extras::kTiles, Extras::kDot}) {
        limit_extras(extras);
        const std::vector<float> got = run(c, false, true, c.kernel);
        ASSERT_EQ(got.size(), want.size());
        double worst = 0;
        for (size_t i = 0; i < got.size(); ++i)
          worst =
              std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])) /
                                  static_cast<double>(sums[i]));
        EXPECT_LE(worst, 0x1.01p-8 + depth * 0x1p-23) << c.kernel << " " << k;
        EXPECT_GT(worst, 0x1p-16) << "nothing was rounded";
      }
    }
}

TEST_F(FastMath, AnyNumberOfThreadsGivesTheSame) {
  whole_ = false;
  for (Bf16Case c :
       {matmul({150, 300}, {300, 200}, true), matmul({6, 40, 64}, {6, 64, 48}, false),
        matmul({3, 512}, {512, 700}, true), convolution({1, 64, 96, 5, 84, 3, 3, 1, 1, 1})}) {
    std::vector<float> first;
    for (const Extras extras : {Extras::kTiles, Extras::kDot}) {
      limit_extras(extras);
      first.clear();
      for (const int threads : {1, 2, 3, 5}) {
        set_thread_count(threads);
        const std::vector<float> got = run(c, false, true, c.kernel);
        if (first.empty()) first = got;
        EXPECT_EQ(got, first) << c.nodes << threads;
      }
    }
  }
}

/// Probabilities lose 2^-9 of themselves, and so do queries, keys and values.
TEST_F(FastMath, AttentionStaysWithinTheRounding) {
  whole_ = false;
  for (const bool causal : {false, true})
    for (const int64_t steps : {16, 40, 300}) {
      const std::vector<int64_t> dims = {1, 2, steps, 40};
      Bf16Case c{shape(dims) + " x, " + shape(dims) + " k, " + shape(dims) + " v",
                 "",
                 std::string("y = Attention <is_causal = ") + (causal ? "1" : "0") + "> (x, k, v)",
                 {{"x", tensor(dims)}, {"k", tensor(dims)}, {"v", tensor(dims)}},
                 "attention_bf16"};
      c.opset = 23;
      const std::vector<float> want = run(c, true, false, "");
      for (const Extras extras : {Extras::kTiles, Extras::kDot}) {
        limit_extras(extras);
        const std::vector<float> got = run(c, false, true, c.kernel);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 0.06) << i;
        EXPECT_NE(got, want);
        set_thread_count(1);
        EXPECT_EQ(run(c, false, true, c.kernel), got);
        set_thread_count(0);
      }
      limit_extras(Extras::kNone);
      const std::vector<float> plain = run(c, false, false, "");
      EXPECT_EQ(run(c, false, true, ""), plain);
      limit_extras(Extras::kTiles);
    }
}

/// Float16 has not the range of bf16: what stands in for it has to scale.
TEST_F(FastMath, AnyRangeOfNumbers) {
  whole_ = false;
  for (const float left : {1e-12f, 1e-3f, 1.0f, 1e5f, 1e15f})
    for (const float right : {1e-15f, 1e-4f, 1.0f, 1e6f, 1e12f})
      for (const bool constant_b : {false, true}) {
        Bf16Case c = matmul({40, 300}, {300, 50}, false);
        for (NamedValue& input : c.inputs) {
          const Tensor& t = input.value.tensor();
          std::vector<float> values(t.data<float>(), t.data<float>() + t.size());
          for (float& value : values) value *= input.name == "x" ? left : right;
          if (input.name == "b" && constant_b) {
            c.constants = "float[300,50] b = {";
            for (size_t i = 0; i < values.size(); ++i) {
              char text[32];
              std::snprintf(text, sizeof text, "%s%.9g", i == 0 ? "" : ",", double{values[i]});
              c.constants += text;
            }
            c.constants += "}";
          }
          input.value = Tensor::of<float>(DType::kFloat32, t.dims(), values);
        }
        if (constant_b) {
          c.inputs.pop_back();
          c.parameters = c.parameters.substr(0, c.parameters.find(", float"));
        }
        const std::vector<float> want = run(c, true, false, ""),
                                 got = run(c, false, true, c.kernel);
        ASSERT_EQ(got.size(), want.size());
        EXPECT_LT(relative_rms(got, want), 4e-3) << left << " " << right;
      }
}

/// An odd number of channels leaves room in the last tile: what stands there must not spread.
TEST_F(FastMath, InfinitiesStayWhereTheyAre) {
  Bf16Case c = convolution({1, 21, 16, 6, 6, 1, 1, 1, 1, 0});
  std::vector<float> values(21 * 36, 1.0f);
  values[0] = std::numeric_limits<float>::infinity();
  c.inputs = {{"x", Tensor::of<float>(DType::kFloat32, std::vector<int64_t>{1, 21, 6, 6}, values)}};
  const std::vector<float> got = run(c, false, true, c.kernel);
  ASSERT_EQ(got.size(), 16u * 36);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(i % 36 == 0 || std::isfinite(got[i])) << i;
}

}  // namespace
}  // namespace tombolo
