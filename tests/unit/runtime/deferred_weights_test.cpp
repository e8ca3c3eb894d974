// Convolutions whose weights take up what follows them, computed when they are packed, against the
// reference kernels.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "operators.h"

namespace tombolo {
namespace {

class DeferredWeights : public Operators {
 protected:
  std::string list(const std::string& name, const std::vector<int64_t>& dims, double least = -1,
                   const std::string& type = "float") {
    std::string text = type, values;
    for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "[" : ",") + std::to_string(dims[i]);
    std::uniform_real_distribution<double> number(least, 1);
    for (int64_t i = 0; i < element_count(dims); ++i)
      values += (i == 0 ? "" : ",") + std::to_string(number(engine_));
    return text + "] " + name + " = {" + values + "}";
  }
  /// Statistics with names that end in `tail`.
  std::string statistics(int64_t channels, const std::string& tail = "") {
    return list("s" + tail, {channels}) + "," + list("b" + tail, {channels}) + "," +
           list("m" + tail, {channels}) + "," + list("v" + tail, {channels}, 0.1);
  }
  static std::string norm(const std::string& from, const std::string& tail = "") {
    return "BatchNormalization (" + from + ", s" + tail + ", b" + tail + ", m" + tail + ", v" +
           tail + ")";
  }
};

TEST_P(DeferredWeights, Convolutions) {
  const auto image = numbers({2, 32, 9, 8}, 1);
  const auto check = [&](const std::vector<int64_t>& weight, int64_t channels,
                         const std::string& product, const Tensor& x, const std::string& type) {
    agree("main (float" + type + " x) => (y) <" + list("w", weight) + "," + statistics(channels) +
              "," + list("c", {channels}) + "> { p = " + product + " y = " + norm("p") + " }",
          {{"x", x}}, 5e-6);
  };
  const std::string four = "[2,32,H,W]";
  check({64, 32, 3, 3}, 64, "Conv <pads = [1, 1, 1, 1]> (x, w)", image, four);
  check({64, 32, 3, 3}, 64, "Conv <strides = [2, 2]> (x, w, c)", image, four);
  check({520, 32, 1, 1}, 520, "Conv (x, w)", image, four);
  check({256, 16, 3, 3}, 256, "Conv <group = 2> (x, w)", image, four);
  check({32, 1, 25, 25}, 32, "Conv <group = 32, pads = [12, 12, 12, 12]> (x, w)", image, four);
  check({32, 64, 3, 3}, 64, "ConvTranspose <strides = [2, 2]> (x, w, c)", image, four);
  check({32, 64, 3, 3}, 128, "ConvTranspose <group = 2> (x, w)", image, four);
  check({64, 32, 9}, 64, "Conv (x, w)", numbers({2, 32, 30}, 1), "[2,32,L]");
  check({32, 32, 3, 3, 3}, 32, "Conv (x, w)", numbers({1, 32, 4, 5, 6}, 1), "[1,32,D,H,W]");
  check({32, 32, 3, 3, 3}, 32, "ConvTranspose (x, w)", numbers({1, 32, 2, 3, 2}, 1),
        "[1,32,D,H,W]");
}

TEST_P(DeferredWeights, Products) {
  const auto check = [&](const std::string& type, const Tensor& x, const std::vector<int64_t>& dims,
                         const std::string& product) {
    agree("main (float" + type + " x) => (y) <" + list("w", dims) + "," + list("k", {130}) + "," +
              list("c", {130}) + "," + statistics(130) + "> { p = " + product + " y = Mul (p, k) }",
          {{"x", x}}, 5e-6);
  };
  for (const int64_t rows : {1, 2, 7, 40}) {
    const Tensor x = numbers({rows, 140}, 1);
    check("[M,140]", x, {140, 130}, "MatMul (x, w)");
    check("[M,140]", x, {130, 140}, "Gemm <transB = 1> (x, w, c)");
    check("[M,140]", x, {140, 130}, "Gemm <alpha = 0.5, beta = 2.0> (x, w, c)");
    check("[1,M,140]", x.reshaped(std::vector<int64_t>{1, rows, 140}), {140, 130}, "MatMul (x, w)");
    agree("main (float[M,140] x) => (y) <" + list("w", {140, 130}) + "," + list("c", {130}) + "," +
              statistics(130) + "> { p = Gemm (x, w, c) y = " + norm("p") + " }",
          {{"x", x}}, 5e-6);
  }
}

TEST_P(DeferredWeights, ScaledTwice) {
  agree("main (float[2,32,H,W] x) => (y) <" + list("w", {64, 32, 3, 3}) + "," + statistics(64) +
            "," + list("k", {64, 1, 1}) + "> { p = Conv (x, w) q = " + norm("p") +
            " r = Mul (q, k) y = Relu (r) }",
        {{"x", numbers({2, 32, 7, 7}, 1)}}, 5e-6);
}

TEST_P(DeferredWeights, OneWeightForTwo) {
  agree("main (float[1,32,H,W] x) => (y, z) <" + list("w", {64, 32, 3, 3}) + "," + statistics(64) +
            "," + statistics(64, "2") + "> { p = Conv (x, w) y = " + norm("p") +
            " q = Conv (x, w) z = " + norm("q", "2") + " }",
        {{"x", numbers({1, 32, 7, 7}, 1)}}, 5e-6);
}

TEST_P(DeferredWeights, Halves) {
  const std::string text =
      "main (float[1,32,H,W] x) => (z) <" + list("w", {64, 32, 3, 3}, -1, "float16") + "," +
      list("s", {64}, -1, "float16") + "," + list("b", {64}, -1, "float16") + "," +
      list("m", {64}, -1, "float16") + "," + list("v", {64}, 0.1, "float16") +
      "> { h = Cast <to = 10> (x) p = Conv (h, w) y = " + norm("p") + " z = Cast <to = 1> (y) }";
  agree(text, {{"x", numbers({1, 32, 7, 7}, 1)}}, 3e-3);
}

TEST_P(DeferredWeights, Codes) {
  const auto codes = [&](const std::string& type, const std::string& name,
                         const std::vector<int64_t>& dims) {
    std::string text = type, values;
    for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "[" : ",") + std::to_string(dims[i]);
    const int least = type == "int8" ? -128 : 0;
    for (int64_t i = 0; i < element_count(dims); ++i)
      values += (i == 0 ? "" : ",") + std::to_string(least + static_cast<int>(engine_() % 256));
    return text + "] " + name + " = {" + values + "}";
  };
  const auto image = numbers({2, 32, 9, 8}, 1);
  for (const char* type : {"int8", "uint8"})
    for (const bool turned : {false, true}) {
      const int64_t channels = turned ? 32 : 64;
      const std::string head =
          "main (float[2,32,H,W] x) => (y) <" +
          codes(type, "w",
                turned ? std::vector<int64_t>{32, 32, 5, 5} : std::vector<int64_t>{64, 32, 3, 3}) +
          "," + list("k", {channels}) + "," + codes(type, "z", {channels}) + "," +
          statistics(channels) + ", float one = {0.01}> {";
      const std::string conv = turned ? "ConvTranspose (x, d)" : "Conv (x, d)";
      const std::string axis = std::string("<axis = ") + (turned ? "1" : "-4") + ">";
      for (const std::string& weight :
           {"DequantizeLinear " + axis + " (w, k, z)", "DequantizeLinear " + axis + " (w, k)",
            std::string("DequantizeLinear (w, one)")}) {
        agree(head + "d = " + weight + " y = " + conv + "}", {{"x", image}}, 5e-6);
        agree(head + "d = " + weight + " p = " + conv + " y = " + norm("p") + "}", {{"x", image}},
              5e-6);
      }
    }
}

/// A convolution, and a normalisation that multiplies by `factor`.
std::unique_ptr<Session> scaled_session(int factor, const SessionOptions& options = {}) {
  std::string values, list;
  for (int i = 0; i < 64 * 32 * 9; ++i) values += (i == 0 ? "" : ",") + std::to_string(i % 7);
  for (const char* name : {"s", "b", "m", "v"}) {
    list += std::string(", float[64] ") + name + " = {";
    for (int i = 0; i < 64; ++i)
      list += (i == 0 ? "" : ",") + std::to_string(*name == 's' ? factor : 1);
    list += "}";
  }
  auto model = parse_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[1,32,9,9] x) => (y) "
      "<float[64,32,3,3] w = {" +
      values + "}" + list + "> { p = Conv (x, w) y = BatchNormalization (p, s, b, m, v) }");
  EXPECT_TRUE(model) << model.error().message;
  auto session = Session::create(*std::move(model), options);
  EXPECT_TRUE(session) << session.error().message;
  return *std::move(session);
}

// Nobody writes the weights down before they are packed.
TEST(DeferredWeight, TakesNoMemory) {
  const uint64_t before = live_tensor_bytes();
  const auto session = scaled_session(2);
  EXPECT_LT(live_tensor_bytes() - before, uint64_t{64} << 10);
}

TEST(DeferredWeight, HasPacksOnDiskOfItsOwn) {
  const TemporaryFolder folder;
  SessionOptions cached;
  cached.pack_cache = folder.path() + "/packs";
  const int64_t dims[] = {1, 32, 9, 9};
  const std::vector<float> ones(32 * 81, 1);
  const std::vector<NamedValue> inputs = {{"x", Tensor::of<float>(DType::kFloat32, dims, ones)}};
  for (const int factor : {2, 3, 2}) {
    const auto got = scaled_session(factor, cached)->run(inputs);
    const auto want = scaled_session(factor)->run(inputs);
    ASSERT_TRUE(got && want);
    EXPECT_EQ((*got)[0].tensor(), (*want)[0].tensor()) << factor;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, DeferredWeights,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
