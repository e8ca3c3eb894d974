// Single operators at every instruction set of this machine, against the reference kernels.

#include <gtest/gtest.h>
#include <numeric>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "operators.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/isa.h"

namespace tombolo {
namespace {

TEST_P(Operators, GridSample) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const int aligned : {0, 1}) {
        const std::string node =
            "(float[N,C,H,W] x, float[N,h,w,2] g) => (y) { y = GridSample <mode = \"" +
            std::string(mode) + "\", padding_mode = \"" + padding +
            "\", align_corners = " + std::to_string(aligned) + "> (x, g) }";
        // Few channels and many, few points and many, an axis of one element.
        agree("main " + node,
              {{"x", numbers({2, 3, 5, 7}, 1)}, {"g", numbers({2, 9, 16, 2}, 0.7f, true)}}, 1e-6);
        agree("main " + node,
              {{"x", numbers({1, 21, 6, 1}, 1, true)}, {"g", numbers({1, 13, 11, 2}, 0.7f, true)}},
              1e-6);
        agree("main " + node, {{"x", numbers({1, 9, 40, 30}, 1)}, {"g", numbers({1, 1, 3, 2}, 1)}},
              1e-6);
        if (std::string(mode) != "cubic")
          agree("main (float[N,C,D,H,W] x, float[N,d,h,w,3] g) => (y) { y = GridSample <mode = \"" +
                    std::string(mode) + "\", padding_mode = \"" + padding +
                    "\", align_corners = " + std::to_string(aligned) + "> (x, g) }",
                {{"x", numbers({1, 12, 3, 4, 5}, 1)}, {"g", numbers({1, 3, 4, 7, 3}, 0.7f, true)}},
                1e-6);
      }
}

TEST_P(Operators, TopK) {
  const Tensor equal =
      Tensor::of<float>(DType::kFloat32, std::vector<int64_t>{2, 200}, std::vector<float>(400, 3));
  for (const int largest : {0, 1})
    for (const int64_t k : {1, 2, 5, 16, 17, 24, 25, 60}) {
      const auto node = [&](int axis) {
        return "main (float[N,M] x) => (y, i) <int64[1] k = {" + std::to_string(k) +
               "}> { y, i = TopK <largest = " + std::to_string(largest) +
               ", axis = " + std::to_string(axis) + "> (x, k) }";
      };
      for (const int64_t n : {2, 8, 31, 32, 33}) {
        if (k <= n) agree(node(1), {{"x", numbers({5, n}, 0.02f, true)}});
      }
      for (const int64_t n : {60, 63, 64, 65, 127, 128, 129, 256, 1100, 2500}) {
        agree(node(1), {{"x", numbers({3, n}, 1)}});
        agree(node(1), {{"x", numbers({3, n}, 0.02f, true)}});
      }
      agree(node(0), {{"x", numbers({130, 19}, 1, true)}});
      agree(node(1), {{"x", equal}});
    }
  // Parts of long lines: noise, many equal ones beside NaN, and each better than all before.
  std::vector<float> rising(13000);
  std::iota(rising.begin(), rising.end(), -6000.0f);
  for (const Tensor& x :
       {numbers({2, 13000}, 1), numbers({1, 13000}, 0.02f, true),
        Tensor::of<float>(DType::kFloat32, std::vector<int64_t>{1, 13000}, rising)})
    for (const char* attributes : {"largest = 0", "largest = 1", "largest = 1, sorted = 0"})
      for (const int64_t k : {25, 100, 1500, 3100})
        agree("main (float[N,M] x) => (y, i) <int64[1] k = {" + std::to_string(k) +
                  "}> { y, i = TopK <" + attributes + "> (x, k) }",
              {{"x", x}});
  // Other types, and so many that they are counted into place; many of them equal.
  for (const int type : {1, 11, 6, 7})
    for (const char* attributes : {"largest = 0", "largest = 1", "largest = 1, axis = 0"})
      for (const int64_t k : {3, 24, 40, 2100, 2500}) {
        const std::vector<NamedValue> lines = {{"x",
                                                numbers({2, 2500}, 9, type != 6 && type != 7)}},
                                      columns = {{"x", numbers({2500, 19}, 9)}};
        const bool down = std::string(attributes).find("axis") != std::string::npos;
        agree("main (float[N,M] x) => (y, i) <int64[1] k = {" + std::to_string(k) +
                  "}> { z = Cast <to = " + std::to_string(type) + "> (x) y, i = TopK <" +
                  attributes + "> (z, k) }",
              down ? columns : lines);
      }
}

TEST_P(Operators, Pools) {
  for (const char* attributes :
       {"kernel_shape = [3, 3], strides = [2, 2]", "kernel_shape = [2, 2], strides = [2, 2]",
        "kernel_shape = [3, 3], pads = [1, 1, 1, 1]", "kernel_shape = [1, 4], strides = [1, 2]",
        "kernel_shape = [5, 3], strides = [3, 3], pads = [2, 1, 0, 1], ceil_mode = 1",
        "kernel_shape = [10, 19], strides = [2, 13], pads = [0, 1, 0, 0], ceil_mode = 1",
        "kernel_shape = [3, 2], dilations = [2, 3], strides = [1, 2], pads = [0, 1, 1, 0]"})
    for (const int64_t width : {7, 15, 16, 17, 32, 33, 40}) {
      const std::string rest = std::string(attributes) + "> (x) }";
      const auto plain = numbers({1, 3, 9, width}, 1), odd = numbers({2, 2, 9, width}, 1, true);
      for (const Tensor& x : {plain, odd}) {
        agree("main (float[N,C,H,W] x) => (y) { y = MaxPool <" + rest, {{"x", x}});
        agree("main (float[N,C,H,W] x) => (y, i) { y, i = MaxPool <" + rest, {{"x", x}});
        agree("main (float[N,C,H,W] x) => (y) { y = AveragePool <" + rest, {{"x", x}}, 1e-6);
        agree("main (float[N,C,H,W] x) => (y) { y = AveragePool <count_include_pad = 1, " + rest,
              {{"x", x}}, 1e-6);
      }
      for (const int p : {1, 2, 3})
        agree("main (float[N,C,H,W] x) => (y) { y = LpPool <p = " + std::to_string(p) + ", " + rest,
              {{"x", plain}}, 1e-6);
    }
}

// Windows of many neighbours, and such as lie some numbers apart.
TEST_P(Operators, PoolsOfManyNeighbours) {
  for (const auto& [kernel, stride] : {std::pair{8, 4},
                                       {10, 5},
                                       {3, 3},
                                       {5, 7},
                                       {40, 17},
                                       {70, 40},
                                       {90, 60},
                                       {100, 10},
                                       {31, 1},
                                       {64, 1},
                                       {65, 1},
                                       {127, 2}})
    for (const int64_t length : {150, 333, 9000}) {
      const std::string window = "kernel_shape = [" + std::to_string(kernel) + "], strides = [" +
                                 std::to_string(stride) + "]";
      const auto line = [&](const std::string& op, const std::string& more, const Tensor& x,
                            double tolerance) {
        agree("main (float[N,C,L] x) => (y) { y = " + op + " <" + window + more + "> (x) }",
              {{"x", x}}, tolerance);
      };
      line("MaxPool", "", numbers({1, 2, length}, 1, true), 0);
      line("MaxPool", ", pads = [2, 1]", numbers({1, 2, length}, 1), 0);
      line("AveragePool", ", pads = [1, 2]", numbers({1, 2, length}, 1), 1e-6);
      line("LpPool", "", numbers({1, 2, length}, 1), 1e-6);
      agree(
          "main (float[N,C,L] x) => (y) { b = Cast <to = 2> (x) y = MaxPool <" + window + "> (b) }",
          {{"x", numbers({1, 2, length}, 90)}});
    }
  // Pixels of many planes side by side.
  for (const int64_t kernel : {17, 31})
    for (const char* op : {"MaxPool", "AveragePool"})
      agree("main (float[N,C,H,W] x) => (y) { y = " + std::string(op) + " <kernel_shape = [3, " +
                std::to_string(kernel) + "], strides = [1, 1]> (x) }",
            {{"x", numbers({1, 21, 9, 60}, 1)}}, 1e-6);
}

// Small planes are turned, many into one image; large ones go a few rows at a time.
TEST_P(Operators, PoolsOfManyPlanes) {
  for (const char* attributes :
       {"kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]",
        "kernel_shape = [2, 2], strides = [2, 2]", "kernel_shape = [3, 3], pads = [1, 1, 1, 1]",
        "kernel_shape = [5, 3], strides = [3, 4], pads = [2, 1, 0, 1], ceil_mode = 1",
        "kernel_shape = [3, 2], dilations = [2, 3], strides = [1, 2], pads = [0, 1, 1, 0]"}) {
    const std::string rest = std::string(attributes) + "> (x) }";
    for (Tensor x :
         {numbers({1, 16, 7, 7}, 1), numbers({3, 13, 9, 8}, 1, true), numbers({1, 8, 40, 37}, 1),
          numbers({1, 9, 67, 65}, 1, true), numbers({2, 1, 131, 129}, 1, true)}) {
      for (float& value : x.span<float>()) value += 0.0f;  // which zero is the greatest is open
      agree("main (float[N,C,H,W] x) => (y) { y = MaxPool <" + rest, {{"x", x}});
      agree("main (float[N,C,H,W] x) => (y) { y = AveragePool <" + rest, {{"x", x}}, 1e-6);
      agree("main (float[N,C,H,W] x) => (y) { y = LpPool <" + rest, {{"x", x}}, 1e-6);
      for (const char* type : {"2", "3"})
        agree("main (float[N,C,H,W] x) => (y) { b = Cast <to = " + std::string(type) +
                  "> (x)\n p = MaxPool <" + std::string(attributes) +
                  "> (b)\n y = Cast <to = 1> (p) }",
              {{"x", x}});
    }
  }
  for (const Tensor& x : {numbers({2, 21, 61}, 1), numbers({1, 17, 30}, 1, true)})
    for (const char* op : {"MaxPool", "AveragePool"})
      agree("main (float[N,C,L] x) => (y) { y = " + std::string(op) +
                " <kernel_shape = [3], strides = [2], pads = [1, 0]> (x) }",
            {{"x", x}}, 1e-6);
  for (const Tensor& x : {numbers({2, 21, 4, 6, 5}, 1), numbers({1, 17, 5, 17, 19}, 1, true)})
    for (const char* op : {"MaxPool", "AveragePool"})
      agree("main (float[N,C,D,H,W] x) => (y) { y = " + std::string(op) +
                " <kernel_shape = [2, 3, 2], strides = [2, 1, 2], pads = [1, 0, 1, 0, 1, 0]> (x) }",
            {{"x", x}}, 1e-6);
}

TEST_P(Operators, ProductsOfOneColumn) {
  for (const int64_t k : {1, 7, 33, 400, 1003})
    for (const int64_t m : {1, 3, 7, 64}) {
      agree("main (float[M,K] a, float[K,N] b) => (y) { y = MatMul (a, b) }",
            {{"a", numbers({m, k}, 1)}, {"b", numbers({k, 1}, 1)}}, 1e-5);
      agree("main (float[B,M,K] a, float[B,K,N] b) => (y) { y = MatMul (a, b) }",
            {{"a", numbers({5, m, k}, 1)}, {"b", numbers({5, k, 1}, 1)}}, 1e-5);
      agree(
          "main (float[M,K] a, float[K,N] b, float[N] c) => (y) "
          "{ y = Gemm <alpha = 0.5, beta = 2.0> (a, b, c) }",
          {{"a", numbers({m, k}, 1)}, {"b", numbers({k, 1}, 1)}, {"c", numbers({1}, 1)}}, 1e-5);
      agree(
          "main (float[K,M] a, float[N,K] b) => (y) { y = Gemm <transA = 1, transB = 1, alpha = "
          "0.5> (a, b) }",
          {{"a", numbers({k, m}, 1)}, {"b", numbers({1, k}, 1)}}, 1e-5);
    }
}

// Sides and results that are read and written where other orders of axes have them.
TEST_P(Operators, ProductsInOtherOrders) {
  // Labels are the names of lengths: which ones are equal is known.
  const auto dims = [](std::string_view term) {
    std::string names = "float[";
    for (const char label : term) names += (names.back() == '[' ? "" : ",") + std::string(1, label);
    return names + "]";
  };
  const auto operands = [&](const std::string& equation) {
    const size_t comma = equation.find(','), arrow = equation.find('-');
    return dims(equation.substr(0, comma)) + " x, " +
           dims(equation.substr(comma + 1, arrow - comma - 1)) + " w";
  };
  const auto model = [&](const std::string& equation) {
    return "main (" + operands(equation) + ") => (y) { y = Einsum <equation = \"" + equation +
           "\"> (x, w) }";
  };
  const auto doubles = [&](const std::string& equation) {
    return "main (" + operands(equation) +
           ") => (y) { a = Cast <to = 11> (x) b = Cast <to = 11> (w) z = Einsum <equation = \"" +
           equation + "\"> (a, b) y = Cast <to = 1> (z) }";
  };
  // Queries, keys and size: few products, tiny ones, one key, parts of tiles.
  for (const auto& [q, k, size] :
       {std::array<int64_t, 3>{1, 130, 32}, {3, 7, 2}, {17, 1, 20}, {40, 33, 24}, {100, 65, 70}})
    for (const int64_t heads : {1, 3}) {
      agree(model("bqhd,bkhd->bhqk"),
            {{"x", numbers({2, q, heads, size}, 1)}, {"w", numbers({2, k, heads, size}, 1)}}, 2e-6);
      agree(doubles("bqhd,bkhd->bhqk"),
            {{"x", numbers({2, q, heads, size}, 1)}, {"w", numbers({2, k, heads, size}, 1)}}, 2e-6);
      agree(doubles("bhqk,bkhd->bqhd"),
            {{"x", numbers({2, heads, q, k}, 1)}, {"w", numbers({2, k, heads, size}, 1)}}, 2e-6);
      agree(model("bhqk,bkhd->bqhd"),
            {{"x", numbers({2, heads, q, k}, 1)}, {"w", numbers({2, k, heads, size}, 1)}}, 2e-6);
      agree(model("bhkq,bkhd->bqhd"),
            {{"x", numbers({2, heads, k, q}, 1)}, {"w", numbers({2, k, heads, size}, 1)}}, 2e-6);
      agree(model("bhdq,bkhd->bhkq"),
            {{"x", numbers({2, heads, size, q}, 1)}, {"w", numbers({2, k, heads, size}, 1)}}, 2e-6);
    }
  // Rows of one B that lie apart, in blocks and in one piece; columns that are joined.
  const auto weight = [&](const std::string& equation) {
    return "main (" + operands(equation) + ", float[N] c) => (y) { p = Einsum <equation = \"" +
           equation + "\"> (x, w) b = Add (p, c) y = Relu (b) }";
  };
  for (const int64_t width : {5, 16, 37}) {
    agree(weight("bhwc,hkc->bhwk"),
          {{"x", numbers({3, 4, width, 21}, 1)},
           {"w", numbers({4, 19, 21}, 1)},
           {"c", numbers({19}, 1)}},
          2e-6);
    agree(weight("bhwc,wck->bhwk"),
          {{"x", numbers({3, 20, width, 21}, 1)},
           {"w", numbers({width, 21, 35}, 1)},
           {"c", numbers({35}, 1)}},
          2e-6);
    agree(weight("bhcw,cg->bhgw"),
          {{"x", numbers({3, 4, 21, width}, 1)},
           {"w", numbers({21, 35}, 1)},
           {"c", numbers({width}, 1)}},
          2e-6);
    agree(weight("bhwc,wcg->bwgh"),
          {{"x", numbers({3, 20, width, 21}, 1)},
           {"w", numbers({width, 21, 35}, 1)},
           {"c", numbers({20}, 1)}},
          2e-6);
    agree(weight("bhwc,wcg->whgb"),
          {{"x", numbers({3, 20, width, 21}, 1)},
           {"w", numbers({width, 21, 35}, 1)},
           {"c", numbers({3}, 1)}},
          2e-6);
  }
}

// Of which nothing says that lengths are equal: they may be, or one of them is 1.
TEST_P(Operators, EinsumOfLengthsNotKnown) {
  const auto model = [](std::string_view equation) {
    const size_t comma = equation.find(','), arrow = equation.find('-');
    const auto dims = [](std::string_view term, char operand) {
      std::string names;
      for (const char label : term)
        names += (names.empty() ? "" : ",") + std::string(1, label) + operand;
      return "float[" + names + "] ";
    };
    return "main (" + dims(equation.substr(0, comma), '0') + "x, " +
           dims(equation.substr(comma + 1, arrow - comma - 1), '1') +
           "w) => (y) { y = Einsum <equation = \"" + std::string(equation) + "\"> (x, w) }";
  };
  for (const std::string_view equation :
       {"bnij,bjnd->bind", "bind,bjnd->bnij", "td,dnh->tnh", "bij,bjk->bik", "abij,abjk->abk",
        "bcd,bcd->b", "bi,bj->bij", "bhwc,hkc->bhwk", "bijc,bijd->bcd"}) {
    const size_t comma = equation.find(','), arrow = equation.find('-');
    const std::string_view terms[] = {equation.substr(0, comma),
                                      equation.substr(comma + 1, arrow - comma - 1)};
    // None is 1, then each label in turn on each side.
    for (int side = 0; side < 2; ++side)
      for (size_t one = 0; one <= terms[side].size(); ++one) {
        std::vector<int64_t> dims[2];
        for (int i = 0; i < 2; ++i)
          for (size_t at = 0; at < terms[i].size(); ++at)
            dims[i].push_back(i == side && at == one ? 1 : 3 + (terms[i][at] - 'a') % 5);
        agree(model(equation), {{"x", numbers(dims[0], 1)}, {"w", numbers(dims[1], 1)}}, 2e-6);
      }
  }
  for (const auto& [j, k] : {std::pair{5, 7}, {1, 7}, {5, 1}})
    agree(
        "main (float[A,B] x, float[C,D] w, float[E,F] v) => (y) "
        "{ y = Einsum <equation = \"ij,jk,kl->il\"> (x, w, v) }",
        {{"x", numbers({3, 5}, 1)}, {"w", numbers({j, k}, 1)}, {"v", numbers({7, 4}, 1)}}, 2e-6);
}

// Counts of Tile and Expand that are computed, and turn out to leave all as it is, or not.
TEST_P(Operators, RepeatsThatAreComputed) {
  for (const int64_t batch : {1, 3}) {
    agree(
        "main (float[N,M] x, float[K,M] w) => (y, z) <int64[1] one = {1}> { n = Shape <start = 0, "
        "end = 1> (w) r = Concat <axis = 0> (n, one) t = Tile (x, r) y = Neg (t) s = Shape (w) e = "
        "Expand (x, s) z = Neg (e) }",
        {{"x", numbers({1, 21}, 1)}, {"w", numbers({batch, 21}, 1)}});
    // As outputs, and of what is written over afterwards.
    agree(
        "main (float[N,M] x, float[K,M] w) => (t, e) <int64[1] one = {1}> { n = Shape <start = 0, "
        "end = 1> (w) r = Concat <axis = 0> (n, one) t = Tile (x, r) s = Shape (w) a = Neg (x) e = "
        "Expand (a, s) }",
        {{"x", numbers({1, 21}, 1)}, {"w", numbers({batch, 21}, 1)}});
  }
}

// Rows of 16-bit floats that meet longer tensors.
// Constant weights of few columns, with rows that are whole vectors and others.
TEST_P(Operators, ProductsOfFewColumns) {
  for (const int64_t k : {129, 144, 200, 517})
    for (const int64_t n : {1, 2, 3, 4, 7, 8}) {
      std::string weights, bias;
      const Tensor w = numbers({k, n}, 1), c = numbers({n}, 1);
      for (int64_t i = 0; i < k * n; ++i)
        weights += (i == 0 ? "" : ", ") + std::to_string(w.data<float>()[i]);
      for (int64_t i = 0; i < n; ++i)
        bias += (i == 0 ? "" : ", ") + std::to_string(c.data<float>()[i]);
      const std::string of = std::to_string(k) + "," + std::to_string(n),
                        turned = std::to_string(n) + "," + std::to_string(k);
      const std::string constants = "<float[" + of + "] w = {" + weights + "}, float[" + turned +
                                    "] t = {" + weights + "}, float[" + std::to_string(n) +
                                    "] c = {" + bias + "}>";
      for (const int64_t m : {1, 2, 4, 7, 600}) {
        const Tensor x = numbers({m, k}, 1, m == 7);
        agree("main (float[M,K] x) => (y, z) " + constants +
                  " { y = Gemm <alpha = 0.5, beta = 2.0> (x, w, c) p = Gemm <transB = 1> (x, t, c) "
                  "z = Sigmoid (p) }",
              {{"x", x}}, 1e-6);
      }
      agree("main (float[A,M,K] x, float[A,M,N] r) => (y) " + constants +
                " { p = MatMul (x, w) s = Add (p, c) q = Add (s, r) y = Relu (q) }",
            {{"x", numbers({3, 5, k}, 1)}, {"r", numbers({3, 5, n}, 1)}}, 1e-6);
    }
}

TEST_P(Operators, ProductsOfNothing) {
  const Tensor w = numbers({5, 7}, 1), c = numbers({7}, 1);
  agree(
      "main (float[A,K] x, float[K,N] w, float[N] c, float[N,M] v) => (y, z, u) { p = MatMul (x, "
      "w) q = Add (p, c) "
      "s = Sigmoid (q) y = Mul (q, s) z = Gemm (x, w, c) u = MatMul (p, v) }",
      {{"x", Tensor::of<float>(DType::kFloat32, Dims{0, 5}, {})},
       {"w", w},
       {"c", c},
       {"v", numbers({7, 2}, 1)}});
  for (const Dims& dims : {Dims{0, 3, 5}, Dims{2, 0, 5}})
    agree(
        "main (float[B,A,K] x, float[K,N] w, float[N] c) => (y) { p = MatMul (x, w) y = Add (p, c) "
        "}",
        {{"x", Tensor::of<float>(DType::kFloat32, dims, {})}, {"w", w}, {"c", c}});
  // Sums of nothing are zeros, and biases.
  agree("main (float[A,K] x, float[K,N] w, float[N] c) => (y) { p = MatMul (x, w) y = Add (p, c) }",
        {{"x", Tensor::of<float>(DType::kFloat32, Dims{3, 0}, {})},
         {"w", Tensor::of<float>(DType::kFloat32, Dims{0, 7}, {})},
         {"c", c}});
}

TEST_P(Operators, BroadcastsOfShortFloats) {
  const auto halves = [](const Tensor& x) {
    std::vector<uint16_t> values(static_cast<size_t>(x.size()));
    f32_to_f16(x.data<float>(), values.data(), x.size());
    return Tensor::of<uint16_t>(DType::kFloat16, x.dims(), values);
  };
  for (const int64_t width : {3, 17, 50, 65, 300})
    for (const char* op : {"Add", "Div", "Max", "Less"}) {
      const auto check = [&](const Tensor& a, const Tensor& b) {
        const auto dims = [](char name, size_t rank) {
          std::string text;
          for (size_t i = 0; i < rank; ++i)
            text += (i == 0 ? "" : ",") + (name + std::to_string(i));
          return text;
        };
        agree("main (float16[" + dims('A', a.rank()) + "] a, float16[" + dims('B', b.rank()) +
                  "] b) => (y) { y = " + op + " (a, b) }",
              {{"a", halves(a)}, {"b", halves(b)}});
      };
      const Tensor x = numbers({3, 37, width}, 1);
      for (const Tensor& other :
           {numbers({width}, 1), numbers({37, 1}, 1), numbers({3, 1, 1}, 1)}) {
        check(x, other);
        check(other, x);
      }
      check(numbers({37, 1}, 1), numbers({3, 1, width}, 1));
      // More than is converted at once, along rows that are short.
      if (width > 3) continue;
      check(numbers({300, 250, width}, 1), numbers({300, 250, 1}, 1));
      check(numbers({1, 250, width}, 1), numbers({300, 250, 1}, 1));
    }
}

TEST_P(Operators, CodesOfSixteenBits) {
  for (const char* type : {"int16", "uint16"}) {
    const std::string t = type, zero = t == "int16" ? "-321" : "41234";
    for (const int64_t n : {1, 7, 40, 333})
      for (const char* scale : {"0.015625", "0.0003", "1e-30", "1000"})
        agree("main (float[2,N] x) => (q, y) <float s = {" + std::string(scale) + "}, " + t +
                  " z = {" + zero +
                  "}> { q = QuantizeLinear (x, s, z)\n"
                  " y = DequantizeLinear (q, s, z) }",
              {{"x", numbers({2, n}, 1, true)}});
    agree("main (float[2,3,50] x) => (q, y) <float[3] s = {0.001, 0.02, 0.3}, " + t +
              "[3] z = {0, 7, 100}> { q = QuantizeLinear <axis = 1> (x, s, z)\n"
              " y = DequantizeLinear <axis = 1> (q, s, z) }",
          {{"x", numbers({2, 3, 50}, 1)}});
  }
}

TEST_P(Operators, Trilu) {
  const Tensor x = numbers({3, 5, 7}, 1), tall = numbers({2, 9, 4}, 1);
  const Tensor wide = numbers({2, 7, 70}, 1), large = numbers({3, 1100, 4}, 1);
  for (const int upper : {0, 1})
    for (const char* k : {"", "0", "2", "-3", "6", "-8", "40", "-9223372036854775807"}) {
      const std::string nodes =
          "Trilu <upper = " + std::to_string(upper) + "> (x" + (*k == 0 ? ") }" : ", k) }");
      const std::string given = *k == 0 ? "" : "<int64 k = {" + std::string(k) + "}> ";
      agree("main (float[A,B,C] x) => (y) " + given + "{ y = " + nodes, {{"x", x}});
      for (const Tensor& other : {tall, wide, large})
        agree("main (float[A,B,C] x) => (y) " + given + "{ y = " + nodes, {{"x", other}});
      agree("main (float[A,B,C] z) => (y) " + given + "{ x = Cast <to = 9> (z)\n y = " + nodes,
            {{"z", x}});
      // Where it may write over what it reads.
      agree("main (float[A,B,C] z) => (y) " + given + "{ x = Neg (z)\n y = " + nodes, {{"z", x}});
    }
}

TEST_P(Operators, PoolsOfLongWindows) {
  for (const char* attributes :
       {"kernel_shape = [1, 300]", "kernel_shape = [2, 300]",
        "kernel_shape = [2, 300], dilations = [2, 1], pads = [0, 0, 1, 0]",
        "kernel_shape = [2, 257]", "kernel_shape = [1, 100], strides = [1, 50]",
        "kernel_shape = [2, 70], strides = [1, 3], pads = [0, 9, 0, 9]",
        "kernel_shape = [1, 291], strides = [1, 2]"}) {
    const std::string rest = std::string(attributes) + "> (x) }";
    for (const Tensor& x : {numbers({2, 3, 2, 300}, 1), numbers({2, 3, 2, 300}, 2, true)}) {
      agree("main (float[N,C,H,W] x) => (y) { y = MaxPool <" + rest, {{"x", x}});
      agree("main (float[N,C,H,W] x) => (y) { y = AveragePool <" + rest, {{"x", x}}, 1e-6);
      agree("main (float[N,C,H,W] x) => (y) { b = Cast <to = 3> (x)\n p = MaxPool <" +
                std::string(attributes) + "> (b)\n y = Cast <to = 1> (p) }",
            {{"x", x}});
    }
  }
}

TEST_P(Operators, Col2Im) {
  for (const int64_t width : {5, 16, 17, 23, 40, 67})
    for (const int stride : {1, 2, 3})
      for (const int pad : {0, 2}) {
        const int64_t blocks = (width + 2 * pad - 3) / stride + 1, rows = (6 + 2 * pad - 2) / 1 + 1;
        const std::string text =
            "_t[N,C,L] x) => (y) <int64[2] i = {6, " + std::to_string(width) +
            "}, int64[2] b = {2, 3}> {\n c = Cast <to = _n> (x)\n y = Col2Im <strides = [1, " +
            std::to_string(stride) + "], pads = [" + std::to_string(pad) + ", " +
            std::to_string(pad) + ", " + std::to_string(pad) + ", " + std::to_string(pad) +
            "]> (c, i, b) }";
        for (const int type : {1, 11, 6, 7}) {
          std::string main = "main (float" + text.substr(2);
          main.replace(main.find("_n"), 2, std::to_string(type));
          agree(main, {{"x", numbers({2, 18, blocks * rows}, 8)}}, 1e-6);
        }
      }
}

TEST_P(Operators, Gathers) {
  const std::string data = "main (float[A,B,C] x, int64[";
  for (const int64_t piece : {1, 2, 3, 4, 16, 33}) {
    const Tensor x = numbers({6, 6, piece}, 1);
    agree(data + "N,M] i) => (y) { y = GatherND (x, i) }", {{"x", x}, {"i", places({50, 1}, 6)}});
    agree(data + "N,M,T] i) => (y) { y = GatherND (x, i) }",
          {{"x", x}, {"i", places({3, 17, 2}, 6)}});
    agree(data + "N,M,T] i) => (y) { y = GatherND <batch_dims = 1> (x, i) }",
          {{"x", x}, {"i", places({6, 5, 1}, 6)}});
    agree(data + "N,M] i) => (y) { y = Gather <axis = 1> (x, i) }",
          {{"x", x}, {"i", places({3, 7}, 6)}});
  }
  // One piece of each part.
  for (const char* type : {"uint8", "float16", "float", "double"})
    for (const int64_t length : {1, 2, 3, 4, 7})
      for (const int64_t piece : {1, 2, 4, 5, 16})
        for (const int64_t outer : {1, 5, 70, 3000})
          agree("main (float[A,B,C] x) => (y) <" + std::string(type) + "[1] o = {1}, int64 i = {" +
                    std::to_string(length - 1) +
                    "}> { c = CastLike (x, o) y = Gather <axis = 1> (c, i) }",
                {{"x", numbers({outer, length, piece}, 1)}});
  agree(data + "N,T] i) => (y) { y = GatherND (x, i) }",
        {{"x", numbers({5, 5, 5}, 1)}, {"i", places({40, 3}, 5)}});
}

// Lists that are read a part at a time: windows of a signal, and places without order.
TEST_P(Operators, GathersOfLongLists) {
  std::vector<int64_t> windows;
  for (int64_t i = 0; i < 13 * 400; ++i) windows.push_back(i / 400 * 160 + i % 400);
  for (const int64_t piece : {1, 3, 16, 70})
    for (const int64_t outer : {1, 3})
      for (const char* type : {"int32", "int64"}) {
        const std::string text =
            std::string("main (float[A,B,C] x, int64[N,M] i) => (y) <") + type +
            "[1] o = {1}> { j = CastLike (i, o) y = Gather <axis = 1> (x, j) }";
        const Tensor x = numbers({outer, 2400, piece}, 1);
        agree(text, {{"x", x}, {"i", Tensor::of<int64_t>(DType::kInt64, Dims{13, 400}, windows)}});
        agree(text, {{"x", x}, {"i", places({3, 701}, 2400)}});
        std::vector<int64_t> wrong = windows;
        wrong[4000] = -2401;
        refuse(text, {{"x", x}, {"i", Tensor::of<int64_t>(DType::kInt64, Dims{13, 400}, wrong)}},
               "-2401");
      }
}

TEST_P(Operators, BroadcastsAlongShortRows) {
  struct Shapes {
    std::initializer_list<int64_t> a, b;
  };
  const Shapes shapes[] = {
      {{512, 5, 1}, {1, 5, 16}},    {{9, 300, 7}, {9, 1, 7}},
      {{700, 3}, {700, 1}},         {{50, 64}, {64}},
      {{3, 40, 1}, {2, 3, 40, 24}}, {{1, 2}, {900, 1}},
      {{5, 300, 1}, {1, 300, 33}},  {{2, 1, 90, 1}, {1, 8, 1, 9}},
  };
  for (const auto& [a, b] : shapes)
    for (const char* type : {"uint8", "float16", "float", "double"})
      for (const char* op : {"Sub", "Less"})
        agree("main (float[" + std::string("A,B,C,D").substr(0, 2 * a.size() - 1) + "] a, float[" +
                  std::string("E,F,G,H").substr(0, 2 * b.size() - 1) + "] b) => (y) <" + type +
                  "[1] o = {1}> { c = CastLike (a, o) d = CastLike (b, o) y = " + op + " (c, d) }",
              {{"a", numbers(a, 3)}, {"b", numbers(b, 3)}});
}

TEST_P(Operators, MultipliesByNarrowMatrices) {
  for (const int64_t k : {1, 3, 4, 6, 8, 9})
    for (const int64_t n : {1, 2, 4, 5, 8}) {
      for (const int64_t m : {31, 32, 33, 47, 200}) {
        agree("main (float[M,K] a, float[K,N] b) => (y) { y = MatMul (a, b) }",
              {{"a", numbers({m, k}, 1)}, {"b", numbers({k, n}, 1)}}, 1e-6);
        agree(
            "main (float[M,K] a, float[N,K] b, float[N] c) => (y) { y = Gemm <transB = 1, alpha "
            "= 0.5> (a, b, c) }",
            {{"a", numbers({m, k}, 1)}, {"b", numbers({n, k}, 1)}, {"c", numbers({n}, 1)}}, 1e-6);
      }
      // What is added lies where the product goes; a function follows.
      agree(
          "main (float[A,B,K] a, float[K,N] b, float[A,B,N] z) => (y) { p = MatMul (a, b) r = "
          "Neg (z) s = Add (p, r) y = Relu (s) }",
          {{"a", numbers({3, 50, k}, 1)}, {"b", numbers({k, n}, 1)}, {"z", numbers({3, 50, n}, 1)}},
          1e-6);
      agree("main (float[A,B,K] a, float[A,K,N] b) => (y) { p = MatMul (a, b) y = Gelu (p) }",
            {{"a", numbers({3, 50, k}, 1)}, {"b", numbers({3, k, n}, 1)}}, 1e-6);
    }
}

TEST_P(Operators, GathersOfSmallPieces) {
  for (const char* type : {"uint8", "float16", "float", "int64", "complex128"})
    for (const int64_t inner : {1, 2, 3}) {
      const std::string cast = std::string(type) == "complex128"
                                   ? "y = Gather <axis = 1> (x, i)"
                                   : "c = CastLike (x, o) d = Gather <axis = 1> (c, i) y "
                                     "= CastLike (d, x)";
      const std::string like = std::string(type) == "complex128" ? "float" : type;
      for (const int64_t count : {1, 7, 300})
        agree("main (float[N,M,L] x, int64[K] i) => (y) <" + like + "[1] o = {1}> { " + cast + " }",
              {{"x", numbers({40, 6, inner}, 1)}, {"i", places({count}, 6)}});
    }
  agree("main (float[N,M] x, int64 i) => (y) { y = Gather <axis = 1> (x, i) }",
        {{"x", numbers({33, 1}, 1)}, {"i", Tensor::scalar_int64(-1)}});
}

TEST_P(Operators, Expands) {
  const auto shape = [](std::vector<int64_t> dims) {
    const int64_t size[] = {static_cast<int64_t>(dims.size())};
    return Tensor::of<int64_t>(DType::kInt64, size, dims);
  };
  for (const char* type : {"uint8", "float16", "float", "int64"}) {
    const std::string main = "main (float[A,B,C,D] x, int64[R] s) => (y) <" + std::string(type) +
                             "[1] o = {1}> { c = CastLike (x, o) y = Expand (c, s) }";
    agree(main, {{"x", numbers({1, 3, 1, 5}, 9)}, {"s", shape({2, 3, 4, 5})}});
    agree(main, {{"x", numbers({1, 3, 4, 1}, 9)}, {"s", shape({6, 1, 1, 1, 1, 7})}});
    agree(main, {{"x", numbers({2, 1, 1, 3}, 9)}, {"s", shape({1})}});
    agree(main, {{"x", numbers({1, 1, 1, 1}, 9)}, {"s", shape({3, 200, 1, 70})}});
    agree(main, {{"x", numbers({2, 1, 70, 1}, 9)}, {"s", shape({1, 90, 1, 3})}});
    agree(main, {{"x", numbers({1, 3, 1, 5}, 9)}, {"s", shape({0, 1, 4, 5})}});
  }
}

TEST_P(Operators, ScattersThatCombine) {
  for (const char* how : {"add", "mul", "max", "min"})
    for (const int64_t count : {1, 50, 4000}) {
      const std::string body =
          std::string(") => (y) { y = ScatterND <reduction = \"") + how + "\"> (x, i, u) }";
      agree("main (float[A,B,C] x, int64[K,T] i, float[K] u" + body,
            {{"x", numbers({5, 5, 5}, 1, true)},
             {"i", places({count, 3}, 5)},
             {"u", numbers({count}, 1, true)}},
            1e-6);
      agree("main (float[A] x, int64[K,T] i, float[K] u" + body,
            {{"x", numbers({70}, 1, true)},
             {"i", places({count, 1}, 70)},
             {"u", numbers({count}, 1, true)}},
            1e-6);
      agree("main (float[A,B,C] x, int64[K,T] i, float[K,C] u" + body,
            {{"x", numbers({5, 5, 7}, 1)},
             {"i", places({count, 2}, 5)},
             {"u", numbers({count, 7}, 1)}},
            1e-6);
    }
}

TEST_P(Operators, ScattersOfTuples) {
  const auto main = [](const char* inputs) {
    return "main (" + std::string(inputs) +
           ") => (y, z) { y = ScatterND (x, i, u) n = Neg (x) z = ScatterND (n, i, u) }";
  };
  // Each place once or more often: the last one stays.
  for (const int64_t count : {1, 50, 4000}) {
    agree(main("float[A,B,C] x, int64[K,T] i, float[K] u"),
          {{"x", numbers({5, 5, 5}, 1)}, {"i", places({count, 3}, 5)}, {"u", numbers({count}, 1)}});
    agree(main("float[A,B,C] x, int64[K,T] i, float[K,C] u"), {{"x", numbers({5, 5, 7}, 1)},
                                                               {"i", places({count, 2}, 5)},
                                                               {"u", numbers({count, 7}, 1)}});
    agree(main("float[A,B,C] x, int64[K,L,T] i, float[K,L,B,C] u"),
          {{"x", numbers({5, 2, 3}, 1)},
           {"i", places({2, count, 1}, 5)},
           {"u", numbers({2, count, 2, 3}, 1)}});
  }
}

TEST_P(Operators, NonMaxSuppression) {
  for (const int centred : {0, 1})
    for (const bool odd : {false, true})
      for (const int64_t count : {1, 40, 700}) {
        const auto main = [&](const char* more, const char* names) {
          return "main (float[N,B,4] b, float[N,C,B] s" + std::string(more) +
                 ") => (y) <int64 most = {300}> { y = NonMaxSuppression <center_point_box = " +
                 std::to_string(centred) + "> (b, s, most" + names + ") }";
        };
        const std::vector<NamedValue> inputs = {{"b", numbers({2, count, 4}, 1, odd)},
                                                {"s", numbers({2, 3, count}, 1, odd)},
                                                {"i", Tensor::scalar_float(0.3f)},
                                                {"t", Tensor::scalar_float(-0.5f)}};
        agree(main(", float i, float t", ", i, t"), inputs);
        agree(main(", float i", ", i"), {inputs[0], inputs[1], inputs[2]});
        agree(main("", ""), {inputs[0], inputs[1]});
      }
}

TEST_P(Operators, Compress) {
  for (const int type : {1, 2, 10, 7})  // of four, one, two and eight bytes
    for (const int some : {0, 1, 2, 7}) {
      std::vector<uint8_t> flags(12);
      for (uint8_t& flag : flags) flag = static_cast<int>(engine_() % 7) < some;
      for (const char* axis : {"", "<axis = 0> ", "<axis = 1> ", "<axis = -1> "}) {
        const Tensor kept = Tensor::of<uint8_t>(DType::kUInt8, std::vector<int64_t>{12}, flags);
        agree(
            "main (float[A,B,C] x, uint8[K] k) => (y) {\n c = Cast <to = " + std::to_string(type) +
                "> (x)\n b = Cast <to = 9> (k)\n y = Compress " + axis + "(c, b) }",
            {{"x", numbers({12, 13, 14}, 4)}, {"k", kept}});
      }
    }
}

TEST_P(Operators, AlongAnAxis) {
  const auto node = [](const std::string& call) {
    return "main (float[A,B,C] x) => (y) { y = " + call + " }";
  };
  // Lengths and widths on either side of vectors, of four of them, and of a strip of columns.
  for (const int64_t length : {1, 3, 32, 70})
    for (const int64_t width : {1, 7, 16, 63, 64, 65, 130, 1029}) {
      const Tensor x = numbers({2, length, width}, 1), wide = numbers({40, length, width}, 3);
      for (const char* name : {"Softmax", "LogSoftmax"}) {
        agree(node(std::string(name) + " <axis = 1> (x)"), {{"x", x}}, 1e-6);
        agree(node(std::string(name) + " <axis = 1> (x)"), {{"x", wide}}, 1e-6);
      }
    }
  for (const int64_t n : {1, 2, 7, 15, 16, 17, 31, 63, 64, 65, 200, 1000}) {
    const Tensor plain = numbers({3, 4, n}, 0.05f), odd = numbers({3, 4, n}, 0.05f, true);
    for (const Tensor& x : {plain, odd}) {
      agree(node("Hardmax <axis = -1> (x)"), {{"x", x}});
      for (const char* last : {"0", "1"})
        for (const char* name : {"ArgMax", "ArgMin"})
          agree(node(name + std::string(" <axis = -1, select_last_index = ") + last + "> (x)"),
                {{"x", x}});
    }
    for (const char* attributes :
         {"", "exclusive = 1", "reverse = 1", "exclusive = 1, reverse = 1"})
      agree("main (float[A,B,C] x) => (y) <int64 axis = {2}> { y = CumSum <" +
                std::string(attributes) + "> (x, axis) }",
            {{"x", plain}}, 1e-7);
    for (const char* attributes : {"", "exclusive = 1"})
      agree("main (float[A,B,C] x) => (y) <int64 axis = {0}> { y = CumSum <" +
                std::string(attributes) + "> (x, axis) }",
            {{"x", numbers({1, 5, 9}, 1)}});
  }
}

TEST_P(Operators, Resize) {
  for (const char* mode : {"linear", "cubic"})
    for (const char* more :
         {"", ", antialias = 1", ", coordinate_transformation_mode = \"align_corners\"",
          ", coordinate_transformation_mode = \"tf_crop_and_resize\""})
      for (const std::string size : {"5, 9", "14, 70", "20, 33", "6, 131", "7, 23"})
        for (const auto& [type, width] :
             {std::pair{1, 40}, {1, 150}, {1, 250}, {2, 40}, {3, 100}}) {
          // From the numbers of a byte, either sign; floats must agree to their last places.
          const std::string to = std::to_string(type), low = type == 2 ? "0" : "-128",
                            high = type == 2 ? "255" : "127";
          agree(
              "main (float[A,B,C,D] x) => (y) <float[8] roi = {0, 0, 0.1, 0.9, 1, 1, 0.8, 0.2}, "
              "int64[4] s = {2, 3, " +
                  size + "}, float low = {" + low + "}, float high = {" + high +
                  "}> { z = Clip (x, low, high) c = Cast <to = " + to +
                  "> (z) y = Resize <mode = \"" + mode + "\"" + more + "> (c, roi, , s) }",
              {{"x", numbers({2, 3, 11, width}, 80)}}, type == 1 ? 1e-5 : 0);
        }
}

TEST_P(Operators, Turned) {
  for (const int type : {1, 2, 7, 10})
    for (const auto& dims :
         {Dims{1, 2, 5, 3}, Dims{2, 3, 16, 8}, Dims{2, 4, 19, 33}, Dims{1, 4, 70, 130},
          Dims{1, 4, 400, 2}, Dims{1, 8, 4, 300}, Dims{3, 60, 4, 4}, Dims{5, 9, 3, 5},
          Dims{2, 60, 8, 8}, Dims{9, 40, 7, 7}, Dims{4, 31, 2, 14}}) {
      const Tensor x = numbers({dims[0], dims[1], dims[2], dims[3]}, 60);
      const std::string node =
          "main (float[A,B,C,D] x) => (y) <float l = {0}, float h = {200}> "
          "{ c = Clip (x, l, h) z = Cast <to = " +
          std::to_string(type) + "> (c) y = ";
      for (const char* perm :
           {"0, 1, 3, 2", "0, 3, 2, 1", "3, 2, 1, 0", "0, 2, 3, 1", "0, 3, 1, 2"})
        agree(node + "Transpose <perm = [" + perm + "]> (z) }", {{"x", x}});
      if (dims[2] % 2 == 0 && dims[3] % 2 == 0)
        agree(node + "SpaceToDepth <blocksize = 2> (z) }", {{"x", x}});
      if (dims[1] % 4 == 0)
        for (const char* mode : {"DCR", "CRD"})
          agree(node + "DepthToSpace <blocksize = 2, mode = \"" + mode + "\"> (z) }", {{"x", x}});
    }
  for (const int64_t n : {1, 15, 64, 100, 1000})
    agree("main (float[N] x) => (y) { b = Cast <to = 9> (x) y = Not (b) }",
          {{"x", numbers({n}, 0.01f)}});
}

TEST_P(Operators, NonMaxSuppressionByItsDefinition) {
  constexpr int64_t kBoxes = 900;
  // Some are empty, some equal, corners stand in any order; many have equal scores.
  const Tensor boxes = numbers({2, kBoxes, 4}, 1), scores = numbers({2, 3, kBoxes}, 0.3f, true);
  const auto corner = [&](int64_t box, int side) {
    const float* p = boxes.data<float>() + box * 4;
    return side < 2 ? std::min(p[side], p[side + 2]) : std::max(p[side - 2], p[side]);
  };
  const auto overlap = [&](int64_t a, int64_t b) {
    const auto area = [&](int64_t box) {
      return (corner(box, 2) - corner(box, 0)) * (corner(box, 3) - corner(box, 1));
    };
    const float height =
        std::min(corner(a, 2), corner(b, 2)) - std::max(corner(a, 0), corner(b, 0));
    const float width = std::min(corner(a, 3), corner(b, 3)) - std::max(corner(a, 1), corner(b, 1));
    if (!(height > 0 && width > 0)) return 0.0f;
    return height * width / (area(a) + area(b) - height * width);
  };
  for (const auto& [most, least] :
       {std::pair(1, -0.2f), {17, -0.2f}, {60, -0.2f}, {500, -0.2f}, {60, 0.7f}, {60, 9.0f}}) {
    std::vector<int64_t> want;
    for (int64_t line = 0; line < 6; ++line) {
      const float* score = scores.data<float>() + line * kBoxes;
      std::vector<int64_t> order, kept;
      for (int64_t i = 0; i < kBoxes; ++i)
        if (score[i] > least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return score[a] > score[b]; });
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) == most) break;
        const int64_t base = line / 3 * kBoxes;
        if (std::none_of(kept.begin(), kept.end(),
                         [&](int64_t k) { return overlap(base + i, base + k) > 0.4f; }))
          kept.push_back(i);
      }
      for (const int64_t i : kept) want.insert(want.end(), {line / 3, line % 3, i});
    }
    auto model = parse_text(
        "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[A,B,4] b, float[A,C,B] s) => (y) "
        "<int64 most = {" +
        std::to_string(most) + "}, float iou = {0.4}, float least = {" + std::to_string(least) +
        "}> "
        "{ y = NonMaxSuppression (b, s, most, iou, least) }");
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*std::move(model), SessionOptions{});
    ASSERT_TRUE(session) << session.error().message;
    auto got = (*session)->run({{"b", boxes}, {"s", scores}});
    ASSERT_TRUE(got) << got.error().message;
    const Tensor& y = (*got)[0].tensor();
    EXPECT_EQ(std::vector<int64_t>(y.data<int64_t>(), y.data<int64_t>() + y.size()), want);
  }
}

TEST_P(Operators, RotaryEmbedding) {
  opset_ = 23;
  for (const char* interleaved : {"0", "1"})
    for (const int64_t heads : {1, 3, 5}) {
      const std::string attributes =
          std::string("interleaved = ") + interleaved + ", num_heads = " + std::to_string(heads);
      const Tensor apart = numbers({2, heads, 37, 24}, 1), packed = numbers({2, 37, heads * 24}, 1);
      const Tensor positions = places({2, 37}, 50);
      std::vector<int64_t> rows(positions.data<int64_t>(), positions.data<int64_t>() + 2 * 37);
      for (int64_t& row : rows) row = std::abs(row) % 50;
      const Tensor ids = Tensor::of<int64_t>(DType::kInt64, positions.dims(), rows);
      const Tensor c = numbers({50, 12}, 1), s = numbers({50, 12}, 1);
      const Tensor c3 = numbers({2, 37, 12}, 1), s3 = numbers({2, 37, 12}, 1);
      for (const Tensor& x : {apart, packed}) {
        const std::string of = x.rank() == 4 ? "[A,B,C,D]" : "[A,B,C]";
        agree("main (float" + of +
                  " x, float[E,F] c, float[E,F] s, int64[A,G] p) => (y) { y = "
                  "RotaryEmbedding <" +
                  attributes + "> (x, c, s, p) }",
              {{"x", x}, {"c", c}, {"s", s}, {"p", ids}}, 1e-6);
        agree("main (float" + of +
                  " x, float[A,E,F] c, float[A,E,F] s) => (y) { y = "
                  "RotaryEmbedding <" +
                  attributes + "> (x, c, s) }",
              {{"x", x}, {"c", c3}, {"s", s3}}, 1e-6);
      }
    }
}

TEST_P(Operators, ClipOfOtherTypes) {
  for (const int type : {2, 3, 4, 5, 6, 7, 11, 12, 13})
    for (const int64_t n : {1, 15, 100}) {
      // Unsigned numbers have no negative ones to begin with; of doubles some are none.
      const bool is_signed = type == 3 || type == 5 || type == 6 || type == 7 || type == 11;
      const std::string to = std::to_string(type);
      for (const char* limits : {"(c, l, h)", "(c, l)", "(c, , h)", "(c, h, l)"})
        agree("main (float[N] x) => (y) <float a = {" + std::string(is_signed ? "-100" : "0") +
                  "}, float b = {100}, float five = {5}, float ten = {10}> { l = Cast <to = " + to +
                  "> (five) h = Cast <to = " + to + "> (ten) z = Clip (x, a, b) c = Cast <to = " +
                  to + "> (z) y = Clip " + limits + " }",
              {{"x", numbers({n}, 20, type == 11)}});
    }
}

TEST_P(Operators, RootsAndRoundingOfDoubles) {
  for (const int64_t n : {1, 3, 8, 100})
    for (const char* op : {"Sqrt", "Floor", "Ceil", "Round"})
      agree(std::string("main (float[N] x) => (y) { d = Cast <to = 11> (x) y = ") + op + " (d) }",
            {{"x", numbers({n}, 20, true)}});
}

TEST_P(Operators, ReverseSequence) {
  constexpr int64_t kTimes = 70, kBatch = 50, kRun = 40;
  std::vector<int64_t> lengths(kBatch);
  for (int64_t& length : lengths) length = static_cast<int64_t>(engine_() % (kTimes + 1));
  for (const bool batch_first : {false, true}) {
    const int64_t outer = batch_first ? kBatch : kTimes, inner = batch_first ? kTimes : kBatch;
    const Tensor x = numbers({outer, inner, kRun}, 1);
    auto model = parse_text(
        "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[A,B,C] x, "
        "int64[N] n) => (y) { y = ReverseSequence <batch_axis = " +
        std::to_string(batch_first ? 0 : 1) +
        ", time_axis = " + std::to_string(batch_first ? 1 : 0) + "> (x, n) }");
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*std::move(model), SessionOptions{});
    ASSERT_TRUE(session) << session.error().message;
    auto got = (*session)->run({{"x", x}, {"n", Tensor::int64s(lengths)}});
    ASSERT_TRUE(got) << got.error().message;
    const float *from = x.data<float>(), *y = (*got)[0].tensor().data<float>();
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t t = 0; t < kTimes; ++t) {
        const int64_t n = lengths[static_cast<size_t>(b)], source = t < n ? n - 1 - t : t;
        const auto row = [&](int64_t time) {
          return (batch_first ? b * kTimes + time : time * kBatch + b) * kRun;
        };
        EXPECT_TRUE(std::equal(y + row(t), y + row(t) + kRun, from + row(source))) << b << " " << t;
      }
  }
}

TEST_P(Operators, Determinants) {
  for (const int64_t n : {1, 2, 3, 7, 8, 9, 12, 15, 16, 17, 32, 33, 70}) {
    const Tensor x = numbers({n < 33 ? 13 : 3, n, n}, 0.5);
    agree("main (float[A,N,N] x) => (y) { y = Det (x) }", {{"x", x}}, 1e-5);
    agree(
        "main (float[A,N,N] x) => (y) { d = Cast <to = 11> (x)\n e = Det (d)\n y = Cast <to = 1> "
        "(e) }",
        {{"x", x}}, 1e-5);
    agree("main (float[A,N,N] z) => (y) { x = Sub (z, z)\n y = Det (x) }", {{"z", x}});
    const Tensor alone = numbers({n, n}, 0.5);
    agree("main (float[N,N] x) => (y) { y = Det (x) }", {{"x", alone}}, 1e-5);
  }
  // What has no number or is singular changes no other.
  for (const int64_t n : {4, 11, 40}) {
    Tensor x = numbers({10, n, n}, 0.5);
    x.data<float>()[3 * n * n + n + 1] = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(x.data<float>() + 6 * n * n + n, n, 0.0f);
    agree("main (float[A,N,N] x) => (y) { y = Det (x) }", {{"x", x}}, 1e-5);
  }
}

TEST_P(Operators, LinearAndSupportVectorModels) {
  const auto list = [&](int64_t n, bool positive = false) {
    std::string text;
    for (int64_t i = 0; i < n; ++i) {
      const float value = std::round(normal_(engine_) * 64) / 64;
      text += (i == 0 ? "" : ", ") + std::to_string(positive ? std::fabs(value) : value);
    }
    return "[" + text + "]";
  };
  const auto names = [](int64_t n, bool text) {
    std::string labels;
    for (int64_t i = 0; i < n; ++i) {
      const std::string name = std::to_string(7 * i - 3);
      labels += (i == 0 ? "" : ", ") + (text ? "\"a label " + name + "\"" : name);
    }
    return std::string(text ? "classlabels_strings = [" : "classlabels_ints = [") + labels + "]";
  };
  constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"};
  constexpr int kTypes[] = {1, 11, 7, 6};
  int round = 0;
  for (const int64_t rows : {1, 3, 4, 31, 70})
    for (const int64_t features : {1, 4, 17, 40})
      for (const int64_t targets : {1, 2, 3, 5, 11}) {
        ++round;
        const Tensor x = numbers({rows, features}, 4);
        const std::string in =
            "main (float[N, F] x) => (y, z) { f = Cast <to = " + std::to_string(kTypes[round % 4]) +
            "> (x)\n ";
        const std::string after =
            std::string(", post_transform = \"") + kTransforms[round / 2 % 4] + "\"> (f)";
        agree(in + "y = ai.onnx.ml.LinearRegressor <coefficients = " + list(targets * features) +
                  ", targets = " + std::to_string(targets) + after + "\n z = Identity (y) }",
              {{"x", x}}, 1e-6);
        const int64_t classes = std::max<int64_t>(2, targets);
        const std::string labels = names(classes, round % 3 == 0);
        agree(in +
                  "y, z = ai.onnx.ml.LinearClassifier <coefficients = " + list(targets * features) +
                  ", intercepts = " + list(targets) + ", " + labels + after + " }",
              {{"x", x}}, 1e-6);
        if (targets > 3) continue;
        constexpr const char* kKernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
        const int64_t pairs = classes * (classes - 1) / 2;
        std::string sizes = "[9";
        for (int64_t i = 1; i < classes; ++i) sizes += ", " + std::to_string(20 * i);
        const int64_t vectors = 9 + 10 * classes * (classes - 1);
        const std::string kernel = std::string("kernel_type = \"") + kKernels[round % 4] +
                                   "\", kernel_params = [0.02, 0.5, " +
                                   (round % 3 == 0 ? "2.5" : "3.0") +
                                   "], support_vectors = " + list(vectors * features);
        agree(in + "y = ai.onnx.ml.SVMRegressor <coefficients = " + list(vectors) +
                  ", n_supports = " + std::to_string(vectors) + ", rho = [0.25], " + kernel +
                  "> (f)\n z = Identity (y) }",
              {{"x", x}}, 1e-6);
        const std::string odds =
            round % 2 == 0 ? ", prob_a = " + list(pairs) + ", prob_b = " + list(pairs) : "";
        agree(in + "y, z = ai.onnx.ml.SVMClassifier <coefficients = " +
                  list(vectors * (classes - 1)) + ", vectors_per_class = " + sizes +
                  "], rho = " + list(pairs) + odds + ", " + labels + ", " + kernel + after + " }",
              {{"x", x}}, 1e-6);
      }
}

INSTANTIATE_TEST_SUITE_P(Isa, Operators,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
