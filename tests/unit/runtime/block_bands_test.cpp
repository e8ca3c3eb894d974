// Layers that run as one, a band of rows at a time.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "networks.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

class Bands : public Networks {};

// Layers one behind the other, a band of rows at a time, where an image between two is more than
// the second cache: strides, kernels that see padding above and below, activations that follow a
// tile, what is added in the end, in place of an input that the first layer of another thread still
// reads.
TEST_P(Bands, OfRows) {
  struct Case {
    std::vector<int64_t> x;
    std::string constants, nodes;
  };
  const auto by_channel = [&](const char* name, int64_t channels, int64_t kernel) {
    return constant(name, {channels, 1, kernel, kernel});
  };
  const Case cases[] = {
      {{1, 3, 151, 134},
       constant("w", {20, 3, 3, 3}) + "," + constant("b", {20}) + "," + by_channel("v", 20, 3) +
           "," + constant("u", {9, 20, 1, 1}) + "," + constant("c", {9}),
       "a = Conv <pads = [1, 1, 1, 1]> (x, w, b)  r = Relu (a)  "
       "d = Conv <group = 20, pads = [1, 1, 1, 1]> (r, v)  e = HardSwish (d)  y = Conv (e, u, c)"},
      {{2, 3, 260, 301},
       constant("w", {33, 3, 3, 3}) + "," + by_channel("v", 33, 5) + "," + constant("b", {33}),
       "a = Conv <strides = [2, 2], pads = [0, 0, 1, 1]> (x, w)  r = Sigmoid (a)  "
       "y = Conv <group = 33, strides = [2, 2], pads = [2, 2, 2, 2]> (r, v, b)"},
      {{1, 16, 131, 150},
       constant("t", {16, 16, 1, 1}) + "," + constant("w", {40, 16, 1, 1}) + "," +
           by_channel("v", 40, 3) + "," + constant("u", {16, 40, 1, 1}),
       "s = Conv (x, t)  a = Conv (s, w)  r = Relu (a)  "
       "d = Conv <group = 40, pads = [1, 1, 1, 1]> (r, v)  e = Conv (d, u)  y = Add (e, s)"},
      {{1, 3, 262, 261},
       constant("w", {16, 3, 7, 7}) + "," + by_channel("v", 16, 3),
       "a = Conv <strides = [2, 2], pads = [3, 3, 3, 3]> (x, w)  r = Relu (a)  "
       "p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (r)  "
       "y = Conv <group = 16, dilations = [5, 2], pads = [5, 2, 5, 2]> (p, v)"},
      {{2, 4, 134, 151},
       constant("w", {20, 4, 1, 1}) + "," + constant("b", {20}) + "," + by_channel("v", 20, 3),
       "a = Conv (x, w, b)  r = Relu (a)  "
       "y = Conv <group = 20, strides = [2, 1], pads = [1, 1, 1, 1]> (r, v)"},
      {{1, 16, 140, 141},
       constant("w", {16, 4, 3, 3}) + "," + constant("u", {24, 16, 1, 1}),
       "p = AveragePool <kernel_shape = [9, 9], pads = [4, 4, 4, 4]> (x)  "
       "a = Conv <group = 4, pads = [1, 1, 1, 1]> (p, w)  r = Relu (a)  "
       "q = AveragePool <kernel_shape = [2, 3], strides = [3, 1], ceil_mode = 1> (r)  "
       "y = Conv (q, u)"},
  };
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    for (const Case& c : cases) {
      const auto kernels = agree(c.constants, c.nodes, {c.x});
      if (GetParam() < Isa::kSse4 || threads * near_bytes() > 1 << 20) continue;
      EXPECT_NE(std::find(kernels.begin(), kernels.end(), "block_bands_f32"), kernels.end())
          << c.nodes;
    }
  }
  set_thread_count(0);
}

// Small layers of which each alone would be one thread's.
TEST_P(Bands, OfThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    set_thread_count(threads);
    const auto kernels =
        agree(constant("w", {64, 1, 3, 3}) + "," + constant("b", {64}) + "," +
                  constant("v", {70, 64, 1, 1}) + "," + constant("c", {70}),
              "d = Conv <group = 64, pads = [1, 1, 1, 1]> (x, w, b)  r = Relu (d)  "
              "a = Conv (r, v, c)  m = Mul (x, x)  s = HardSigmoid (a)  t = Mul (a, s)  "
              "p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (t)  q = ReduceSum (m)  "
              "y = Add (p, q)",
              {{1, 64, 25, 6}, {3, 64, 9, 7}, {1, 64, 6, 6}, {1, 64, 40, 11}});
    const auto joined = std::count(kernels.begin(), kernels.end(), "block_bands_f32");
    EXPECT_EQ(joined, GetParam() != Isa::kScalar && (threads == 2 || threads == 3)) << threads;
  }
  set_thread_count(0);
}

// Rows that two threads make both, where that takes less time than to come together.
TEST_P(Bands, OfThreadsThroughSmallImages) {
  std::string constants, nodes, from = "x";
  for (const std::string i : {"0", "1", "2"}) {
    const std::string to = i == "2" ? "y" : "t" + i;
    constants += (i == "0" ? "" : ",") + constant("w" + i, {64, 1, 3, 3}) + "," +
                 constant("b" + i, {64}) + "," + constant("v" + i, {64, 64, 1, 1}) + "," +
                 constant("c" + i, {64});
    nodes += "d" + i + " = Conv <group = 64, pads = [1, 1, 1, 1]> (" + from + ", w" + i + ", b" +
             i + ")  r" + i + " = Relu (d" + i + ")  a" + i + " = Conv (r" + i + ", v" + i + ", c" +
             i + ")  " + to + " = Relu (a" + i + ")  ";
    from = to;
  }
  for (const int threads : {1, 2, 3, 16}) {
    set_thread_count(threads);
    for (const std::vector<int64_t>& x : {std::vector<int64_t>{1, 64, 24, 5}, {1, 64, 9, 6}}) {
      const auto kernels = agree(constants, nodes, {x});
      const auto joined = std::count(kernels.begin(), kernels.end(), "block_bands_f32");
      if (threads == 2 && x[2] == 24 && GetParam() != Isa::kScalar) {
        EXPECT_EQ(joined, 1);
      }
      EXPECT_LE(joined, 3) << threads;
    }
  }
  set_thread_count(0);
}

// Sequences and images of one column: strides, dilations and pads as they come.
TEST_P(Bands, OfThreadsAlongLines) {
  std::mt19937 engine(GetParam() == Isa::kSse4 ? 3 : 4);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(engine()) % n; };
  int64_t joined = 0;
  for (int net = 0; net < 10; ++net) {
    const bool column = net % 2 == 1;  // [N, C, T, 1] and not [N, C, T]
    const auto sizes = [&](const char* name, int64_t along, int64_t across) {
      return std::string(name) + " = [" + std::to_string(along) +
             (column ? ", " + std::to_string(across) : std::string()) + "]";
    };
    std::string constants, nodes, from = "x";
    for (int i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i), to = i == 3 ? "y" : "a" + n;
      const int64_t kernel = 1 + below(9), dilation = 1 + below(3), group = below(4) == 0 ? 16 : 64;
      const int64_t before = below((kernel - 1) * dilation + 1), after = below(kernel);
      std::vector<int64_t> by_channel = {64, 64 / group, kernel}, of_one = {64, 64, 1};
      if (column) {
        by_channel.push_back(1);
        of_one.push_back(1);
      }
      constants += (i == 0 ? "" : ",") + constant("w" + n, by_channel) + "," +
                   constant("v" + n, of_one) + "," + constant("c" + n, {64});
      nodes += "d" + n + " = Conv <group = " + std::to_string(group) + ", " +
               sizes("strides", 1 + below(6) / 5, 1) + ", " + sizes("dilations", dilation, 1) +
               ", pads = [" + std::to_string(before) + (column ? ", 0, " : ", ") +
               std::to_string(after) + (column ? ", 0" : "") + "]> (" + from + ", w" + n + ")  e" +
               n + " = " + (below(2) == 0 ? "Relu" : "HardSwish") + " (d" + n + ")  f" + n +
               " = Conv (e" + n + ", v" + n + ", c" + n + ")  " + to + " = " +
               (i == 3 && net % 3 == 0 ? "Add (f3, d3)" : "Relu (f" + n + ")") + "  ";
      from = to;
    }
    std::vector<int64_t> x = {1 + below(2), 64, 150 + below(60)};
    if (column) x.push_back(1);
    for (const int threads : {1, 2, 3, 16}) {
      set_thread_count(threads);
      const auto kernels = agree(constants, nodes, {x});
      joined += threads == 2 ? std::count(kernels.begin(), kernels.end(), "block_bands_f32") : 0;
    }
  }
  if (GetParam() >= Isa::kSse4) {
    EXPECT_GE(joined, 10);
  }
  set_thread_count(0);
}

// Kernels, strides, dilations and pads as they come, of layers that an image of 16 channels passes.
TEST_P(Bands, OfAnyLayers) {
  std::mt19937 engine(GetParam() == Isa::kSse4 ? 1 : 2);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(engine()) % n; };
  const auto pair = [](const char* name, int64_t a, int64_t b) {
    return std::string(name) + " = [" + std::to_string(a) + ", " + std::to_string(b) + "]";
  };
  constexpr const char* kActivations[] = {"Relu", "HardSwish", "Identity"};
  for (int net = 0; net < 12; ++net) {
    std::string constants, nodes, from = "x";
    const int64_t count = 2 + below(4);
    for (int64_t i = 0; i < count; ++i) {
      const std::string n = std::to_string(i), to = i + 1 == count ? "y" : "a" + n;
      const int64_t kind = below(4), kernel[] = {1 + below(5), 1 + below(5)};
      const int64_t dilation[] = {1 + below(3), 1 + below(2)};
      const auto pad = [&](int axis) { return below((kernel[axis] - 1) * dilation[axis] / 2 + 1); };
      const int64_t top = pad(0), left = pad(1), bottom = pad(0), right = pad(1);
      const std::string pads = "pads = [" + std::to_string(top) + ", " + std::to_string(left) +
                               ", " + std::to_string(bottom) + ", " + std::to_string(right) + "]";
      const std::string steps = pair("strides", 1 + below(8) / 7, 1 + below(8) / 7);
      constants += i == 0 ? "" : ",";
      if (kind == 0) {
        constants += constant("w" + n, {16, 16, 1, 1}) + "," + constant("b" + n, {16});
        nodes += "t" + n + " = Conv (" + from + ", w" + n + ", b" + n + ")  ";
      } else if (kind == 1) {
        constants += constant("w" + n, {1});
        nodes += "t" + n + " = MaxPool <" + pair("kernel_shape", kernel[0], kernel[1]) + ", " +
                 pair("dilations", dilation[0], dilation[1]) + ", " + steps + ", " + pads + "> (" +
                 from + ")  ";
      } else {
        const int64_t group = kind == 2 ? 16 : 4;
        constants += constant("w" + n, {16, 16 / group, kernel[0], kernel[1]});
        nodes += "t" + n + " = Conv <group = " + std::to_string(group) + ", " +
                 pair("dilations", dilation[0], dilation[1]) + ", " + steps + ", " + pads + "> (" +
                 from + ", w" + n + ")  ";
      }
      nodes += to + " = " + kActivations[below(3)] + " (t" + n + ")  ";
      from = to;
    }
    for (const int threads : {1, 2}) {
      set_thread_count(threads);
      agree(constants, nodes, {{1, 16, 150 + below(20), 150 + below(20)}});
    }
  }
  set_thread_count(0);
}

INSTANTIATE_TEST_SUITE_P(Isa, Bands,
                         ::testing::Values(Isa::kSse4, Isa::kAvx2, Isa::kAvx512, Isa::kNeon),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace tombolo
