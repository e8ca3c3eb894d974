// Graphs of transposed convolutions at every instruction set of this machine, against the reference
// kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "networks.h"

namespace tombolo {
namespace {

class TransposedConvolutions : public Networks {};

TEST_P(TransposedConvolutions, AgreeWithTheReference) {
  for (const char* attributes :
       {"strides = [2, 2]", "strides = [1, 1], pads = [1, 0, 1, 2]",
        "strides = [3, 2], dilations = [2, 1], output_padding = [2, 1], pads = [1, 1, 0, 1]",
        "strides = [2, 1], auto_pad = \"SAME_UPPER\"",
        "strides = [2, 2], auto_pad = \"SAME_LOWER\"", "output_shape = [15, 12], strides = [2, 1]",
        "strides = [1, 2], pads = [4, 0, 4, 0]"}) {
    const std::string list(attributes);
    const auto kernels =
        agree(constant("w", {6, 5, 3, 2}) + "," + constant("b", {5}),
              "y = ConvTranspose <" + list + "> (x, w, b)", {{1, 6, 7, 9}, {2, 6, 8, 5}});
    EXPECT_EQ(kernels, std::vector<std::string>{"conv_transpose_f32"});
    agree(constant("w", {6, 5, 3, 2}), "y = ConvTranspose <group = 3, " + list + "> (x, w)",
          {{2, 6, 7, 9}});
  }
  agree(constant("w", {4, 3, 3}), "y = ConvTranspose <strides = [2]> (x, w)", {{2, 4, 9}});
  // Windows side by side or apart, and rows that more outputs make longer.
  for (const char* list : {"strides = [2, 2]", "strides = [2, 2], output_padding = [1, 1]",
                           "strides = [3, 4], output_padding = [2, 3], pads = [1, 0, 0, 1]",
                           "strides = [2, 3]", "strides = [4, 7], output_padding = [0, 6]"})
    for (const int64_t width : {3, 16, 17, 40})
      agree(constant("w", {5, 3, 2, 2}) + ", " + constant("b", {3}),
            std::string("y = ConvTranspose <") + list + "> (x, w, b)", {{2, 5, 4, width}});
  agree(constant("w", {5, 2, 1, 3}), "y = ConvTranspose <strides = [1, 3]> (x, w)",
        {{1, 5, 3, 11}});
  for (const char* strides : {"[1, 3]", "[3, 4]", "[2, 5]"})
    agree(constant("w", {5, 2, 3, 5}),
          std::string("y = ConvTranspose <pads = [1, 1, 0, 2], strides = ") + strides + "> (x, w)",
          {{1, 5, 4, 37}});
  agree(constant("w", {4, 3, 2, 3, 2}), "y = ConvTranspose <strides = [2, 1, 2]> (x, w)",
        {{1, 4, 3, 4, 5}});
  agree(constant("w", {40, 20, 2, 2}) + "," + constant("b", {20}),
        "y = ConvTranspose <strides = [2, 2]> (x, w, b)", {{1, 40, 14, 15}});
}

// Windows that meet, of channels enough to fill vectors (add_windows): whole panels, parts of one,
// several of them, bands along each axis.
TEST_P(TransposedConvolutions, AddWindows) {
  for (const char* attributes :
       {"strides = [2, 2]", "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]",
        "strides = [3, 2], dilations = [2, 3], pads = [0, 4, 3, 1]",
        "strides = [1, 4], pads = [1, 2, 1, 0], output_padding = [0, 3]",
        "strides = [4, 4], pads = [1, 1, 0, 1]"}) {
    for (const int64_t channels : {8, 15, 16, 31, 96})
      agree(constant("w", {6, channels, 3, 4}) + "," + constant("b", {channels}),
            std::string("y = ConvTranspose <") + attributes + "> (x, w, b)",
            {{1, 6, 5, 7}, {2, 6, 1, 19}});
    agree(constant("w", {6, 16, 3, 4}),
          std::string("y = ConvTranspose <group = 2, ") + attributes + "> (x, w)", {{2, 6, 4, 3}});
  }
  agree(constant("w", {3, 32, 5}), "y = ConvTranspose <strides = [2], pads = [2, 1]> (x, w)",
        {{1, 3, 2000}});
  agree(constant("w", {2, 16, 3, 2, 3}),
        "y = ConvTranspose <strides = [2, 2, 2], pads = [1, 0, 1, 0, 1, 1]> (x, w)",
        {{1, 2, 9, 20, 30}});
  agree(constant("w", {2, 16, 3, 3}), "y = ConvTranspose <strides = [2, 2]> (x, w)",
        {{1, 2, 60, 70}});
  // More bands than products.
  agree(constant("w", {2, 16, 2, 2}),
        "y = ConvTranspose <group = 2, strides = [2, 2], dilations = [130, 2100]> (x, w)",
        {{1, 2, 1, 1}});
}

TEST_P(TransposedConvolutions, OfComputedWeights) {
  for (const int64_t width : {3, 20}) {
    const auto kernels = agree(constant("w", {6, 5, 3, 2}) + "," + constant("b", {5}),
                               "s = ReduceMean <keepdims = 0> (x)\n v = Add (w, s)\n"
                               "y = ConvTranspose <strides = [2, 2]> (x, v, b)",
                               {{2, 6, 7, width}});
    EXPECT_EQ(kernels.back(), "conv_transpose_f32");
    agree(constant("w", {6, 1, 3, 2}),
          "s = ReduceMean <keepdims = 0> (x)\n v = Add (w, s)\n"
          "y = ConvTranspose <group = 6, strides = [2, 2]> (x, v)",
          {{2, 6, 7, width}});
    agree(constant("w", {6, 4, 3, 2}),
          "s = ReduceMean <keepdims = 0> (x)\n v = Add (w, s)\n"
          "y = ConvTranspose <group = 3> (x, v)",
          {{2, 6, 7, width}});
  }
}

TEST_P(TransposedConvolutions, InBlocks) {
  for (const int64_t outputs : {5, 9, 33, 70}) {
    const std::string weights = constant("w", {20, 3, 3, 3}) + "," +
                                constant("v", {20, outputs, 2, 3}) + "," +
                                constant("b", {outputs}) + "," + constant("u", {4, outputs, 1, 1});
    const std::string stem = "a = Conv <pads = [1, 1, 1, 1]> (x, w)\n";
    const auto kernels =
        agree(weights, stem + "c = ConvTranspose <strides = [2, 3]> (a, v, b)\n y = Conv (c, u)",
              {{1, 3, 9, 17}, {2, 3, 30, 6}});
    EXPECT_EQ(
        std::find(kernels.begin(), kernels.end(), "block_conv_transpose_f32") != kernels.end(),
        outputs >= 8);
    agree(weights, stem + "y = ConvTranspose <strides = [2, 3], pads = [1, 0, 0, 1]> (a, v)",
          {{2, 3, 9, 17}});
    agree(weights, stem + "y = ConvTranspose <strides = [2, 3]> (a, v)", {{1, 3, 1, 1}});
  }
}

TEST_P(TransposedConvolutions, InBlocksWhoseWindowsMeet) {
  const char* const kAttributes[] = {
      "strides = [2, 2], pads = [1, 1, 1, 1]",
      "strides = [2, 2], pads = [1, 0, 0, 1], output_padding = [1, 1]",
      "strides = [3, 2], dilations = [2, 3]",
      "strides = [1, 1], pads = [3, 0, 0, 2]",
      "strides = [1, 1], pads = [1, 0, 0, 2]",
      "strides = [2, 2], pads = [0, 4, 0, 4], dilations = [1, 2]",
      "strides = [5, 4], pads = [1, 0, 2, 1]",
      "strides = [2, 2], auto_pad = \"SAME_UPPER\"",
      "strides = [2, 3], auto_pad = \"SAME_LOWER\"",
      "strides = [2, 2], output_shape = [20, 15]",
  };
  for (const char* attributes : kAttributes)
    for (const int64_t inputs : {16, 37, 200})
      for (const int64_t outputs : {16, 40}) {
        const auto kernels =
            agree(constant("w", {inputs, outputs, 4, 3}) + "," + constant("b", {outputs}),
                  std::string("y = ConvTranspose <") + attributes + "> (x, w, b)",
                  {{1, inputs, 9, 7}, {2, inputs, 5, 33}, {1, inputs, 4, 4}});
        // A lone one whose windows do not meet stays channels first, one that gives as many places
        // as it takes is a convolution.
        const std::string_view said = attributes;
        const bool apart = said.starts_with("strides = [5, 4]");
        EXPECT_EQ(kernels[apart ? 0 : 1], apart ? "conv_transpose_f32"
                                          : said.find("[3, 0, 0, 2]") != said.npos
                                              ? "block_conv_f32"
                                              : "block_conv_transpose_f32");
      }
}

// Of a known size, what steps by 1 is a convolution where that has fewer products than windows have
// sums: not with a border that grows, nor with outputs that fill no vector.
TEST_P(TransposedConvolutions, ThatStepByOne) {
  const struct {
    int64_t inputs, outputs, size, kernel, pad;
    const char* kernel_name;
  } kCases[] = {{64, 64, 14, 3, 1, "block_conv_f32"},
                {16, 40, 14, 5, 2, "block_conv_f32"},
                {64, 64, 7, 5, 0, "conv_transpose_f32"},
                {48, 10, 16, 4, 0, "conv_transpose_f32"}};
  for (const auto& c : kCases) {
    const std::string pad = std::to_string(c.pad), pads = pad + "," + pad + "," + pad + "," + pad;
    const auto kernels = agree(
        constant("w", {c.inputs, c.outputs, c.kernel, c.kernel}) + "," + constant("b", {c.outputs}),
        "y = ConvTranspose <pads = [" + pads + "]> (x, w, b)", {{1, c.inputs, c.size, c.size}},
        true);
    EXPECT_TRUE(std::find(kernels.begin(), kernels.end(), c.kernel_name) != kernels.end())
        << c.inputs << " to " << c.outputs;
  }
}

TEST_P(TransposedConvolutions, InBlocksOfGroups) {
  struct Groups {
    int64_t groups, inputs, outputs;
  };
  for (const Groups g : {Groups{21, 1, 1}, Groups{8, 4, 4}, Groups{2, 32, 16}})
    for (const char* attributes :
         {"strides = [2, 2], pads = [1, 1, 1, 1]", "strides = [4, 3], pads = [2, 0, 0, 1]",
          "strides = [2, 1], dilations = [3, 2], output_padding = [1, 0]",
          "strides = [1, 2], pads = [3, 3, 3, 3]", "strides = [6, 2]"}) {
      const int64_t inputs = g.groups * g.inputs;
      const auto kernels = agree(
          constant("w", {inputs, g.outputs, 4, 5}) + "," + constant("b", {g.groups * g.outputs}),
          "y = ConvTranspose <group = " + std::to_string(g.groups) + ", " + attributes +
              "> (x, w, b)",
          {{1, inputs, 9, 7}, {2, inputs, 4, 12}});
      EXPECT_EQ(kernels[1], "block_conv_transpose_f32");
    }
}

TEST_P(TransposedConvolutions, OfOnePixel) {
  for (const char* attributes : {"strides = [1, 1]", "strides = [2, 2], pads = [1, 1, 1, 0]",
                                 "strides = [3, 3], dilations = [2, 1], output_padding = [1, 2]"}) {
    const auto kernels = agree(constant("w", {12, 24, 4, 3}) + "," + constant("b", {24}),
                               std::string("y = ConvTranspose <") + attributes + "> (x, w, b)",
                               {{1, 12, 1, 1}, {3, 12, 1, 1}});
    EXPECT_EQ(kernels, std::vector<std::string>{"conv_transpose_f32"});
    agree(constant("w", {12, 24, 4, 3}),
          std::string("y = ConvTranspose <") + attributes + "> (x, w)", {{2, 12, 1, 1}});
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, TransposedConvolutions,
                         ::testing::Values(Isa::kSse4, Isa::kAvx2, Isa::kAvx512, Isa::kNeon),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace tombolo
