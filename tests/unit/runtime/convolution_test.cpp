// Graphs of convolutions at every instruction set of this machine, against the reference kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/thread_pool.h"
#include "networks.h"
#include "output_bits.h"
#include "runtime/kernels/isa.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

// Steps of more than a few pixels: rows fall into as many phases, of which short kernels read some.
TEST_P(Networks, ConvolutionsOfLongSteps) {
  for (const char* attributes :
       {"strides = [5]", "strides = [5], pads = [3, 9]", "strides = [12]",
        "strides = [70], pads = [4, 0]", "strides = [6], dilations = [4], pads = [20, 5]"})
    agree(constant("w", {40, 2, 10}) + "," + constant("b", {40}),
          std::string("y = Conv <") + attributes + "> (x, w, b)", {{2, 2, 1003}});
  for (const char* attributes : {"strides = [6, 5], pads = [2, 1, 1, 3]", "strides = [1, 7]",
                                 "strides = [9, 5], pads = [0, 3, 0, 2]"})
    agree(constant("w", {20, 3, 6, 7}) + "," + constant("b", {20}),
          std::string("y = Conv <") + attributes + "> (x, w, b)", {{1, 3, 40, 147}});
}

TEST_P(Networks, BlockedConvolutions) {
  struct Case {
    std::vector<int64_t> x, w;
    const char* attributes;
  };
  const Case cases[] = {
      {{1, 3, 17, 18}, {20, 3, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{2, 3, 23, 23}, {9, 3, 7, 7}, "strides = [2, 2], pads = [3, 3, 3, 3]"},
      {{1, 4, 21, 22}, {17, 4, 3, 3}, "strides = [1, 2], dilations = [2, 2], pads = [0, 2, 1, 2]"},
      {{1, 1, 9, 40}, {33, 1, 1, 5}, "strides = [3, 4]"},
      {{2, 70, 9, 9}, {80, 70, 1, 1}, "strides = [1, 1]"},
      {{1, 70, 14, 13}, {66, 70, 1, 1}, "strides = [2, 2]"},
      {{2, 40, 7, 7}, {65, 40, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{1, 20, 15, 16}, {48, 20, 3, 3}, "strides = [2, 2], pads = [0, 0, 1, 1]"},
      {{1, 17, 12, 11}, {5, 17, 3, 2}, "dilations = [3, 2], pads = [3, 1, 2, 4]"},
      {{1, 600, 7, 7}, {90, 600, 1, 1}, "strides = [1, 1]"},
      {{1, 300, 5, 5}, {40, 300, 5, 5}, "auto_pad = \"SAME_UPPER\""},
      {{1, 128, 28, 28}, {160, 128, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{1, 201, 9, 11}, {70, 201, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{2, 24, 30, 33}, {40, 24, 3, 3}, "pads = [1, 0, 1, 2]"},
      {{1, 16, 70, 90}, {16, 16, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{2, 20, 33, 18}, {3, 20, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{1, 40, 26, 27}, {1, 40, 3, 3}, "pads = [0, 1, 1, 0]"},
      {{1, 64, 9, 12}, {96, 32, 3, 3}, "group = 2, pads = [1, 1, 1, 1]"},
      {{2, 48, 20, 20}, {48, 16, 3, 3}, "group = 3, pads = [1, 1, 1, 1], strides = [2, 1]"},
      {{1, 32, 30, 30}, {32, 16, 3, 3}, "group = 2, pads = [1, 1, 1, 1]"},
      {{2, 40, 14, 9}, {40, 1, 5, 5}, "group = 40, strides = [2, 2], pads = [2, 2, 2, 2]"},
      {{1, 17, 19, 30}, {17, 1, 3, 3}, "group = 17, dilations = [2, 3], pads = [2, 3, 2, 3]"},
      {{1, 6, 2, 2}, {6, 1, 7, 7}, "group = 6, pads = [3, 3, 3, 3]"},
      {{1, 17, 9, 8}, {17, 1, 3, 3}, "group = 17, pads = [1, 1, 1, 1]"},
      // One vector of channels, and the last panel of one.
      {{3, 1, 28, 28}, {6, 1, 5, 5}, "pads = [2, 2, 2, 2]"},
      {{2, 20, 9, 30}, {7, 20, 3, 3}, "strides = [1, 2], pads = [1, 1, 1, 1]"},
      {{3, 90, 9, 13}, {24, 90, 1, 1}, "strides = [1, 1]"},
      // Few tiles.
      {{1, 40, 8, 8}, {24, 40, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{3, 17, 6, 7}, {20, 17, 3, 3}, "pads = [1, 1, 1, 1]"},
      // Several groups in a block.
      {{1, 40, 9, 12}, {40, 8, 3, 3}, "group = 5, pads = [1, 1, 1, 1]"},
      {{2, 36, 7, 7}, {36, 4, 3, 3}, "group = 9, pads = [1, 1, 1, 1]"},
      {{1, 18, 15, 17}, {18, 2, 3, 3}, "group = 9, strides = [2, 2], pads = [1, 1, 1, 1]"},
      {{1, 24, 14, 14}, {24, 8, 3, 3}, "group = 3, strides = [2, 2], pads = [0, 0, 1, 1]"},
      {{1, 32, 10, 9}, {32, 4, 5, 5}, "group = 8, pads = [2, 2, 2, 2]"},
      {{2, 16, 6, 5}, {16, 8, 1, 1}, "group = 2"},
      {{1, 32, 12, 11}, {32, 4, 3, 3}, "group = 8, dilations = [2, 2], pads = [2, 2, 2, 2]"},
      {{1, 20, 7, 5}, {20, 1, 5, 5}, "group = 20, pads = [2, 2, 2, 2]"},
      {{1, 16, 14, 31}, {16, 1, 5, 5}, "group = 16, pads = [2, 4, 2, 0]"},
      {{1, 18, 9, 35}, {18, 1, 3, 3}, "group = 18, strides = [2, 2], pads = [0, 0, 2, 2]"},
      {{1, 33, 21, 20}, {33, 1, 5, 5}, "group = 33, strides = [1, 2], pads = [1, 2, 0, 1]"},
      {{1, 16, 4, 1}, {16, 1, 3, 3}, "group = 16, pads = [1, 1, 1, 1]"},
      {{1, 16, 3, 12}, {16, 1, 1, 3}, "group = 16, pads = [0, 3, 0, 3], strides = [1, 3]"},
      {{1, 16, 3, 3}, {18, 16, 1, 1}, "pads = [2, 1, 1, 2]"},
      {{1, 32, 8, 8}, {64, 8, 3, 3}, "group = 4, pads = [1, 1, 1, 1]"},
      // More weights than stay near, and an image of several bands.
      {{1, 130, 45, 46}, {80, 130, 5, 5}, "strides = [2, 2], pads = [2, 2, 2, 2]"},
      // Dilated kernels over images inside each other, of one size and of several.
      {{1, 32, 16, 16}, {33, 32, 3, 3}, "dilations = [2, 2], pads = [2, 2, 2, 2]"},
      {{2, 20, 17, 15}, {16, 20, 3, 3}, "dilations = [2, 4], pads = [2, 4, 2, 4]"},
      {{1, 64, 16, 16}, {96, 32, 3, 3}, "group = 2, dilations = [4, 4], pads = [4, 4, 4, 4]"},
      {{1, 16, 40, 39}, {16, 16, 3, 3}, "dilations = [3, 1], pads = [0, 1, 3, 2]"},
      {{1, 700, 8, 8}, {720, 700, 3, 3}, "dilations = [2, 2], pads = [2, 2, 2, 2]"},
      // Winograd's filtering by 5 x 5: whole tiles and parts, groups, dilations, batches, weights
      // transformed in every run.
      {{1, 128, 28, 28}, {160, 128, 5, 5}, "pads = [2, 2, 2, 2]"},
      {{2, 24, 30, 33}, {40, 24, 5, 5}, "pads = [2, 0, 1, 4]"},
      {{1, 201, 9, 11}, {70, 201, 5, 5}, "pads = [2, 2, 2, 2]"},
      {{2, 30, 33, 18}, {3, 30, 5, 5}, "pads = [0, 2, 2, 0]"},
      {{1, 64, 15, 12}, {96, 32, 5, 5}, "group = 2, pads = [2, 2, 2, 2]"},
      {{3, 32, 17, 15}, {16, 32, 5, 5}, "dilations = [2, 3], pads = [4, 6, 4, 6]"},
      {{1, 350, 12, 13}, {352, 350, 5, 5}, "pads = [2, 2, 2, 2]"},
      // Along one axis.
      {{1, 192, 17, 17}, {100, 192, 1, 7}, "pads = [0, 3, 0, 3]"},
      {{2, 130, 17, 9}, {192, 130, 7, 1}, "pads = [3, 0, 2, 0]"},
      {{1, 150, 9, 30}, {200, 150, 1, 5}, "pads = [1, 2, 0, 2]"},
      {{1, 150, 12, 7}, {97, 150, 5, 1}, "dilations = [2, 1], pads = [4, 0, 4, 0]"},
      {{2, 120, 8, 8}, {110, 120, 1, 3}, "pads = [0, 1, 0, 1]"},
      {{1, 256, 13, 11}, {256, 128, 3, 1}, "group = 2, dilations = [3, 1], pads = [3, 0, 3, 0]"},
      {{1, 128, 3, 95}, {128, 128, 1, 3}, "dilations = [1, 4], pads = [0, 4, 0, 4]"},
      // Kernels mostly beyond the image: pixels that see the same positions go together.
      {{1, 72, 16, 16}, {40, 72, 3, 3}, "dilations = [12, 12], pads = [12, 12, 12, 12]"},
      {{2, 64, 9, 11}, {96, 64, 3, 3}, "dilations = [6, 8], pads = [6, 8, 6, 8]"},
      {{1, 128, 33, 21},
       {32, 64, 3, 3},
       "group = 2, dilations = [18, 18], pads = [18, 18, 18, 18]"},
      {{1, 300, 14, 13},
       {20, 300, 3, 3},
       "strides = [2, 2], dilations = [9, 9], pads = [9, 9, 9, 9]"},
      {{2, 70, 2, 3}, {17, 70, 5, 5}, "pads = [2, 2, 2, 2]"},
      {{1, 64, 4, 30}, {16, 64, 3, 5}, "dilations = [3, 11], pads = [3, 22, 3, 20]"},
      // Positions of the kernel that never meet the input: all but one, all of an axis's first or
      // last, and some that stay for want of padding.
      {{1, 20, 12, 12}, {18, 20, 3, 3}, "dilations = [24, 24], pads = [24, 24, 24, 24]"},
      {{2, 17, 4, 19}, {20, 17, 3, 3}, "dilations = [30, 2], pads = [30, 2, 30, 2]"},
      {{1, 16, 5, 9}, {18, 16, 3, 5}, "dilations = [7, 9], pads = [14, 18, 0, 18]"},
      {{1, 17, 6, 7}, {16, 17, 3, 3}, "dilations = [9, 8], pads = [0, 5, 18, 12]"},
      {{1, 16, 7, 8}, {16, 16, 3, 3}, "strides = [3, 2], dilations = [8, 5], pads = [8, 9, 8, 9]"},
      {{1, 20, 3, 12}, {20, 1, 3, 3}, "group = 20, dilations = [4, 40], pads = [4, 40, 4, 40]"},
  };
  for (const Case& c : cases) {
    const std::string conv = std::string("Conv <") + c.attributes + "> (x, w, b)";
    const std::string constants = constant("w", c.w) + "," + constant("b", {c.w[0]});
    const auto kernels = agree(constants, "y = " + conv, {c.x});
    // Groups that are neither parts of a block nor blocks are not, nor one position alone, nor
    // sums of few inputs: these are for others that read blocks.
    const bool short_sums = c.w[1] * c.w[2] * c.w[3] <= 72;
    const auto read = agree(constants, "a = " + conv + " y = GlobalAveragePool (a)", {c.x});
    const bool few = c.w[0] <= 8;  // nor few outputs
    if (few)
      agree(constants + "," + constant("u", {c.x[1], c.x[1], 1, 1}) + "," +
                constant("v", {24, c.w[0], 1, 1}),
            "g = Conv (x, u)\n x1 = Tanh (g)\n a = Conv <" + std::string(c.attributes) +
                "> (x1, w, b)\n y = Conv (a, v)",
            {c.x});
    if ((c.w[0] != 64 || c.w[1] != 8) && c.w[2] * c.w[3] > 1 && !few) {
      const auto& blocked = short_sums ? read : kernels;
      EXPECT_NE(std::find(blocked.begin(), blocked.end(), "block_conv_f32"), blocked.end())
          << conv << " of " << c.w[0] << " x " << c.w[1];
    }
    const char* after[] = {"Clip (a, low, high)", "HardSwish (a)", "Sigmoid (a)"};
    agree(constants + ", float low = {-0.5}, float high = {1.5}",
          "a = " + conv + "\n y = " + after[(&c - cases) % 3], {c.x});
    agree(constants,
          "a = " + conv + "\n c = Sin (a)\n d = " + conv + " \n e = Add (c, d)\n y = Relu (e)",
          {c.x});
  }
}

/// Of few channels, and too large to be copied: padding of all sides, sizes that end anywhere,
/// kernels that are wider than what is beyond an edge, several panels of outputs, and a residual.
TEST_P(Networks, ConvolutionsOfLargeImages) {
  struct Case {
    int64_t inputs, outputs, kernel[2], size[2];
    const char* attributes;
  };
  for (const Case& c : {
           Case{3, 16, {3, 3}, {57, 83}, "strides = [2, 2], pads = [1, 1, 1, 1]"},
           Case{3, 40, {3, 3}, {64, 50}, "strides = [2, 2], pads = [0, 0, 1, 1]"},
           Case{1, 24, {5, 5}, {91, 95}, "pads = [4, 0, 3, 6]"},
           Case{3, 32, {7, 7}, {61, 60}, "strides = [2, 2], pads = [3, 3, 3, 3]"},
           Case{3, 10, {6, 6}, {60, 66}, "strides = [2, 2], pads = [2, 2, 2, 2]"},
           Case{4, 16, {3, 5}, {40, 81}, "strides = [1, 3], pads = [1, 2, 1, 2]"},
           Case{3, 20, {3, 3}, {60, 60}, "dilations = [2, 3], pads = [2, 3, 2, 3]"},
           Case{2,
                33,
                {3, 4},
                {70, 75},
                "dilations = [3, 1], strides = [2, 1], pads = [5, 1, 4, 2]"},
           Case{3, 16, {1, 3}, {1, 4001}, "pads = [0, 1, 0, 1]"},
           Case{3, 18, {11, 11}, {63, 63}, "strides = [4, 4], pads = [2, 2, 2, 2]"},
       }) {
    const std::string list(c.attributes);
    for (const int64_t batch : {1, 3}) {
      const auto kernels =
          agree(constant("w", {c.outputs, c.inputs, c.kernel[0], c.kernel[1]}) + "," +
                    constant("b", {c.outputs}) + "," + constant("v", {16, c.outputs, 1, 1}),
                "t = Conv <" + list + "> (x, w, b)  u = Relu (t)  y = Conv (u, v)",
                {{batch, c.inputs, c.size[0], c.size[1]}}, true);
      EXPECT_TRUE(kernels[0] == "block_conv_f32" || kernels[0] == "block_bands_f32") << list;
    }
    agree(constant("w", {c.outputs, c.inputs, c.kernel[0], c.kernel[1]}) + "," +
              constant("v", {16, c.outputs, 1, 1}),
          "t = Conv <" + list + "> (x, w)  m = Sigmoid (t)  u = Mul (t, m)  y = Conv (u, v)",
          {{2, c.inputs, c.size[0], c.size[1]}}, true);
  }
}

/// Channels are not turned into blocks for few outputs: each number of them that vectors of pixels
/// are summed up for, rows that end within vectors and at the end of the input, sums of several
/// parts, groups, depth, and what is added lying where the result does.
TEST_P(Networks, ConvolutionsToFewChannels) {
  struct Case {
    std::vector<int64_t> x;
    int64_t inputs;  ///< of a group
    std::vector<int64_t> kernel;
    const char* attributes;
    int64_t groups = 1;
  };
  const Case cases[] = {
      {{1, 3, 20, 70}, 3, {3, 3}, "pads = [1, 1, 1, 1]"},
      {{2, 8, 9, 31}, 8, {5, 4}, "pads = [2, 1, 0, 2]"},
      {{1, 5, 23, 40}, 5, {3, 5}, "strides = [2, 3], pads = [1, 2, 1, 2]"},
      {{3, 2, 14, 18}, 2, {3, 3}, "dilations = [2, 5], pads = [2, 5, 2, 5]"},
      {{1, 7, 12, 33}, 7, {2, 3}, "dilations = [1, 1]"},
      {{2, 20, 11, 17}, 20, {1, 1}, "strides = [1, 1]"},
      {{1, 6, 30, 9}, 6, {1, 1}, "strides = [2, 2]"},
      {{1, 70, 6, 24}, 70, {3, 3}, "pads = [1, 1, 1, 1]"},
      {{2, 4, 333}, 4, {7}, "pads = [3, 3]"},
      {{1, 40, 100}, 40, {3}, "strides = [2], pads = [1, 0]"},
      {{2, 3, 5, 12, 21}, 3, {3, 3, 3}, "pads = [1, 1, 1, 1, 1, 1]"},
      {{1, 4, 6, 9, 20}, 4, {2, 3, 1}, "strides = [2, 1, 1], pads = [0, 1, 0, 1, 1, 0]"},
      {{1, 6, 8, 8, 8},
       2,
       {3, 3, 3},
       "group = 3, strides = [1, 2, 2], pads = [1, 1, 1, 1, 1, 1]",
       3},
      {{2, 9, 20, 30}, 3, {3, 3}, "group = 3, pads = [1, 1, 1, 1]", 3},
  };
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    for (const Case& c : cases)
      for (const int64_t each : {1, 2, 3, 4, 5, 6, 7, 8, 19}) {
        const int64_t outputs = each * c.groups;
        std::vector<int64_t> w = {outputs, c.inputs};
        w.insert(w.end(), c.kernel.begin(), c.kernel.end());
        const std::string conv = std::string("Conv <") + c.attributes + "> (x, w, b)";
        const std::string constants = constant("w", w) + "," + constant("b", {outputs});
        const auto kernels = agree(constants, "y = " + conv, {c.x}, true);
        if (each <= 4 && c.groups == 1 && c.inputs <= 8) {
          EXPECT_EQ(kernels, std::vector<std::string>{"conv_f32"});
        }
        if (threads == 3) continue;
        agree(constants, "c = " + conv + " y = Relu (c)", {c.x}, true);
        agree(constants, "c = " + conv + " s = Sigmoid (c) y = Mul (c, s)", {c.x}, true);
        agree(constants + "," + constant("v", w),
              "r = Conv <" + std::string(c.attributes) + "> (x, v)  a = Sin (r)  c = " + conv +
                  "  d = Add (a, c)  y = LeakyRelu (d)",
              {c.x}, true);
      }
    set_thread_count(0);
  }
}

TEST_P(Networks, ConvolutionsOfImagesWithDepth) {
  struct Case {
    std::vector<int64_t> x, w;
    const char* attributes;
  };
  const Case cases[] = {
      {{2, 20, 3, 14, 15}, {24, 20, 3, 3, 3}, "pads = [1, 1, 1, 1, 1, 1]"},
      {{1, 16, 4, 9, 22}, {33, 16, 3, 3, 3}, "pads = [0, 1, 1, 0, 1, 1]"},
      {{2, 17, 5, 12, 11}, {18, 17, 2, 3, 3}, "pads = [2, 1, 0, 1, 0, 2]"},
      {{1, 32, 3, 16, 16}, {32, 16, 5, 3, 3}, "group = 2, pads = [2, 1, 1, 2, 1, 1]"},
      // A kernel without depth, over some slices and beyond the first and last.
      {{2, 20, 7, 14, 15}, {24, 20, 1, 3, 3}, "strides = [3, 1, 1], pads = [0, 1, 1, 0, 1, 1]"},
      {{1, 24, 4, 13, 8}, {16, 24, 1, 3, 3}, "pads = [1, 1, 1, 2, 1, 1]"},
      {{1, 40, 4, 30, 30}, {24, 40, 1, 3, 3}, "pads = [0, 1, 1, 0, 1, 1]"},
      // Several blocks of slices, in two images.
      {{2, 16, 9, 40, 40}, {16, 16, 3, 3, 3}, "pads = [1, 1, 1, 1, 1, 1]"},
      {{1, 600, 2, 8, 8}, {40, 600, 2, 3, 3}, "pads = [1, 1, 1, 0, 1, 1]"},
  };
  for (const Case& c : cases) {
    const std::string conv = std::string("Conv <") + c.attributes + "> (x, w, b)";
    const std::string constants = constant("w", c.w) + "," + constant("b", {c.w[0]});
    agree(constants, "y = " + conv, {c.x});
    agree(constants, "a = " + conv + "\n c = Sin (a)\n e = Add (a, c)\n y = Relu (e)", {c.x});
  }
}

/// The result lies where what is added lay, once that is read for the last time.
TEST_P(Networks, ConvolutionsOverWhatIsAdded) {
  struct Case {
    std::vector<int64_t> x, w;
    int64_t stride = 1, group = 1;
  };
  const Case cases[] = {{{1, 16, 67}, {64, 16, 1}},
                        {{2, 16, 67}, {64, 16, 3}},
                        {{1, 64, 64}, {64, 64, 1}},
                        {{1, 40, 9}, {70, 40, 3}, 2},
                        {{1, 24, 67}, {24, 1, 3}, 1, 24},
                        {{3, 24, 30}, {48, 8, 3}, 1, 3},
                        {{1, 16, 9, 9}, {64, 16, 1, 1}},
                        {{2, 16, 9, 9}, {64, 16, 3, 3}},
                        {{1, 64, 5, 4}, {130, 64, 3, 3}},
                        {{1, 3, 20, 21}, {33, 3, 7, 7}, 2},
                        {{2, 32, 12, 12}, {32, 1, 5, 5}, 1, 32},
                        {{1, 64, 12, 12}, {64, 16, 3, 3}, 1, 4},
                        {{1, 8, 6, 6, 6}, {24, 8, 1, 1, 1}},
                        {{1, 8, 6, 5, 6}, {24, 8, 3, 3, 3}}};
  for (const Case& c : cases) {
    std::vector<int64_t> y = {c.x[0], c.w[0]};
    std::string strides;
    for (size_t i = 2; i < c.x.size(); ++i) {
      y.push_back((c.x[i] - c.w[i]) / c.stride + 1);
      strides += (i == 2 ? "" : ", ") + std::to_string(c.stride);
    }
    for (const char* last : {"y = Relu (s)", "y = Tanh (s)", "y = Identity (s)"})
      agree(constant("r", y) + ", " + constant("w", c.w) + ", " + constant("b", {c.w[0]}),
            "m = ReduceMean <keepdims = 0> (x)\n q = Add (r, m)\n c = Conv <strides = [" + strides +
                "], group = " + std::to_string(c.group) + "> (x, w, b)\n s = Add (q, c)\n " + last,
            {c.x}, true);
  }
}

TEST_P(Networks, KernelsBeyondTheInput) {
  const auto kernels = agree(constant("w", {3, 4, 3}) + "," + constant("b", {3}),
                             "y = Conv <dilations = [700], pads = [700, 700]> (x, w, b)",
                             {{1, 4, 9}, {2, 4, 900}, {2, 4, 5}});
  EXPECT_EQ(kernels, std::vector<std::string>{"conv_f32"});
  agree(constant("w", {5, 3, 3, 3, 3}),
        "y = Conv <dilations = [2, 5, 9], pads = [2, 5, 9, 2, 5, 9]> (x, w)",
        {{1, 3, 4, 5, 6}, {1, 3, 2, 6, 11}});
}

TEST_P(Networks, ConvolutionsOfBatches) {
  // With two threads each takes whole images of these.
  set_thread_count(2);
  for (const int64_t outputs : {6, 20})
    for (const char* attributes :
         {"pads = [1, 1, 1, 1]", "strides = [2, 2], pads = [2, 0, 1, 1]", "dilations = [2, 1]"}) {
      const std::string node = std::string("y = Conv <") + attributes + "> (x, w, b)";
      for (const int64_t inputs : {1, 20})
        agree(constant("w", {outputs, inputs, 3, 3}) + "," + constant("b", {outputs}), node,
              {{4, inputs, 9, 12}, {7, inputs, 6, 6}});
    }
  agree(constant("w", {20, 6, 5}), "y = Conv <pads = [2, 2], strides = [2]> (x, w)",
        {{6, 6, 40}, {5, 6, 7}});
  // Outputs of one column.
  agree(constant("w", {20, 3, 4, 10}) + "," + constant("b", {20}), "y = Conv (x, w, b)",
        {{5, 3, 30, 10}, {1, 3, 4, 10}});
  agree(constant("w", {20, 24, 5, 1}), "y = Conv <strides = [2, 1], pads = [2, 0, 2, 0]> (x, w)",
        {{5, 24, 30, 1}, {1, 24, 70, 1}});
  set_thread_count(0);
}

// Of images too small for a tile it takes the same pixel of several.
TEST_P(Networks, BlockedConvolutionsOfSmallImagesOfBatches) {
  const std::string few = constant("w", {40, 20, 3, 3}) + "," + constant("b", {40}) + "," +
                          constant("v", {40, 40, 3, 3}),
                    plain = constant("w", {40, 3, 3, 3}) + "," + constant("b", {40}) + "," +
                            constant("v", {40, 40, 3, 3}),
                    tall = constant("w", {70, 68, 5, 3}) + "," + constant("b", {70}) + "," +
                           constant("v", {70, 70, 5, 3}),
                    points = constant("w", {24, 40, 1, 1}) + "," + constant("b", {24}) + "," +
                             constant("v", {40, 24, 1, 1}),
                    groups = constant("w", {64, 16, 3, 3}) + "," + constant("b", {64}) + "," +
                             constant("v", {64, 32, 3, 3});
  const std::string same = "pads = [1, 1, 1, 1]", high = "pads = [2, 1, 2, 1]";
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    for (const int64_t batch : {2, 9, 33}) {
      const auto images = [&](int64_t channels) {
        return std::vector<std::vector<int64_t>>{{batch, channels, 1, 1},
                                                 {batch, channels, 2, 2},
                                                 {batch, channels, 3, 3},
                                                 {batch, channels, 1, 4}};
      };
      const auto both = [](const std::string& window, const std::string& more) {
        return "a = Conv <" + window + "> (x, w, b) r = Relu (a) c = Conv <" + more +
               "> (r, v) d = Add (c, a) y = HardSwish (d)";
      };
      agree(few, both(same, same), images(20));
      agree(plain, both(same, same), images(3));
      agree(tall, both(high, high), images(68));
      agree(groups, both("group = 4, " + same, "group = 2, " + same), images(64));
      agree(few,
            "a = Conv <strides = [2, 2], " + same + "> (x, w, b) y = Conv <" + same + "> (a, v)",
            images(20));
      agree(points,
            "m = GlobalAveragePool (x) a = Conv (m, w, b) r = Relu (a) c = Conv (r, v)"
            " h = HardSigmoid (c) y = Mul (x, h)",
            images(40));
    }
  }
  set_thread_count(0);
}

// They are products of the pixels of all images by a matrix: blocks that are not full on both
// sides, few outputs, a residual, activations that are part of the product and others.
TEST_P(Networks, BlockedConvolutionsOfOnePixel) {
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    for (const int64_t outputs : {5, 24, 90, 600}) {
      const std::string constants =
          constant("u", {40, 7, 3, 3}) + "," + constant("w", {outputs, 40, 1, 1}) + "," +
          constant("b", {outputs}) + "," + constant("v", {outputs, outputs, 1, 1}) + "," +
          constant("t", {21, outputs, 1, 1}) + ", float low = {-0.5}, float high = {1.5}";
      for (const int64_t batch : {1, 2, 40}) {
        const auto kernels = agree(constants,
                                   "i = Conv <pads = [1, 1, 1, 1]> (x, u) m = GlobalAveragePool (i)"
                                   " a = Conv (m, w, b) h = HardSwish (a) c = Conv (h, v)"
                                   " d = Add (c, h) r = Clip (d, low, high) y = Conv (r, t)",
                                   {{batch, 7, 6, 5}});
        EXPECT_NE(std::find(kernels.begin(), kernels.end(), "block_conv_f32"), kernels.end());
      }
    }
  }
  set_thread_count(0);
}

// Of layers of some microseconds threads take a few pieces from image to output, or one takes all.
TEST_P(Networks, BlockedConvolutionsOfFewTilesByThreads) {
  for (const int threads : {2, 3, 16}) {
    set_thread_count(threads);
    for (const int64_t channels : {16, 24, 48, 64}) {
      const std::string weights = constant("w", {channels, channels, 3, 3}) + "," +
                                  constant("b", {channels}) + "," +
                                  constant("v", {channels, channels, 3, 3});
      agree(weights,
            "a = Conv <pads = [1, 1, 1, 1]> (x, w, b)  r = Relu (a)  "
            "c = Conv <pads = [1, 1, 1, 1]> (r, v)  y = Add (c, a)",
            {{1, channels, 8, 8},
             {1, channels, 15, 14},
             {1, channels, 29, 25},
             {2, channels, 16, 16}});
    }
    agree(constant("w", {24, 24, 5, 5}), "y = Conv <pads = [2, 2, 2, 2]> (x, w)",
          {{1, 24, 9, 13}, {1, 24, 20, 20}});
    agree(constant("w", {32, 32, 1, 3}), "y = Conv <pads = [0, 1, 0, 1]> (x, w)",
          {{1, 32, 5, 20}, {1, 32, 9, 31}});
  }
  set_thread_count(0);
}

// Channels by themselves: rows that fill vectors, several at a time, and narrow ones as one.
TEST_P(Networks, LoneConvolutionsOfChannels) {
  struct Case {
    std::vector<int64_t> x, w;
    const char* attributes;
  };
  const Case cases[] = {
      {{1, 3, 9, 24}, {3, 1, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{2, 5, 18, 33}, {5, 1, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{1, 4, 11, 57}, {8, 1, 3, 3}, "pads = [0, 1, 2, 0]"},
      {{1, 3, 7, 50}, {3, 1, 3, 3}, "strides = [2, 2], pads = [1, 1, 1, 1]"},
      {{1, 3, 21, 140}, {3, 1, 3, 3}, "strides = [1, 2], dilations = [2, 3], pads = [2, 3, 1, 0]"},
      {{1, 3, 13, 45}, {3, 1, 5, 5}, "pads = [2, 2, 2, 2]"},
      {{1, 3, 5, 64}, {3, 1, 5, 5}, "pads = [0, 2, 4, 0]"},
      {{1, 2, 23, 90}, {2, 1, 5, 5}, "strides = [2, 2], pads = [2, 2, 2, 2]"},
      {{1, 3, 12, 115}, {3, 1, 7, 7}, "pads = [3, 3, 3, 3]"},
      {{1, 3, 4, 70}, {9, 1, 1, 3}, "pads = [0, 1, 0, 1]"},
      {{1, 3, 40, 26}, {3, 1, 5, 1}, "strides = [3, 1]"},
      {{1, 3, 4, 9, 33}, {6, 1, 3, 3, 3}, "pads = [1, 1, 1, 1, 1, 1]"},
      {{2, 3, 4, 9, 6}, {6, 1, 2, 3, 3}, "pads = [1, 1, 1, 0, 1, 1]"},
      {{1, 3, 300}, {3, 1, 5}, "pads = [2, 2]"},
  };
  for (const Case& c : cases) {
    const std::string conv =
        "Conv <group = " + std::to_string(c.x[1]) + ", " + c.attributes + "> (x, w, b)";
    const std::string constants = constant("w", c.w) + "," + constant("b", {c.w[0]}) +
                                  ", float low = {-0.5}, float high = {1.5}";
    const auto kernels = agree(constants, "y = " + conv, {c.x}, true);
    EXPECT_EQ(kernels, std::vector<std::string>{"conv_f32"}) << conv;
    for (const char* after : {"y = Clip (a, low, high)", "y = HardSwish (a)",
                              "c = Sin (a)\n d = Add (a, c)\n y = Relu (d)"})
      agree(constants, "a = " + conv + "\n " + after, {c.x}, true);
    if (c.x[1] == c.w[0] && c.w[2] == 3 && c.attributes == std::string("pads = [1, 1, 1, 1]"))
      agree(constants, "c = Sin (x)\n a = " + conv + "\n d = Add (a, c)\n y = Relu (d)", {c.x},
            true);
  }
}

TEST_P(Networks, ConvolutionsOfManyGroups) {
  // Enough of them for threads to take whole groups, in blocks of channels (16) and beside them.
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (const int64_t inputs : {16, 24})
      for (const int64_t groups : {2, 5, 7})
        agree(
            constant("w", {groups * inputs, inputs, 3, 3}) + "," + constant("b", {groups * inputs}),
            "a = Conv <pads = [1, 1, 1, 1], group = " + std::to_string(groups) +
                "> (x, w, b)\n c = Add (a, x)\n y = Relu (c)",
            {{1, groups * inputs, 14, 13}, {2, groups * inputs, 30, 29}});
  }
  set_thread_count(0);
}

TEST_P(Networks, BlockedConvolutionsOfWideWindowsByChannel) {
  // Rows of a kernel go in parts of at most five columns; images narrower than a kernel, and such
  // that only the middle outputs see whole.
  for (const int64_t width : {4, 6, 7, 8, 9, 11, 12, 16})
    for (const char* attributes :
         {"", ", strides = [2, 2]", ", strides = [1, 2], dilations = [2, 1]",
          ", strides = [2, 1], dilations = [1, 2]", ", strides = [3, 3]"}) {
      const std::string most = std::to_string(width), some = std::to_string(width - 2);
      const auto kernels =
          agree(constant("p", {36, 3, 1, 1}) + "," + constant("w", {36, 1, 3, width}) + "," +
                    constant("b", {36}),
                "a = Conv (x, p)  c = Conv <group = 36, pads = [2, " + some + ", 2, " + most + "]" +
                    attributes + "> (a, w, b)  y = Relu (c)",
                {{1, 3, 5, 31}, {2, 3, 7, 7}, {1, 3, 6, 3}});
      // Each on its own, or both as one loop of threads.
      const auto alone = std::count(kernels.begin(), kernels.end(), "block_conv_f32");
      const auto joined = std::count(kernels.begin(), kernels.end(), "block_bands_f32");
      EXPECT_EQ(alone + 2 * joined, 2);
    }
}

TEST_P(Networks, BlockedConvolutionsOfGroupsThatBridgeBlocks) {
  struct Groups {
    int64_t groups, inputs, outputs;
  };
  for (const Groups g : {Groups{3, 24, 24}, Groups{2, 40, 8}, Groups{5, 8, 24}, Groups{3, 16, 24},
                         Groups{2, 56, 56}}) {
    const int64_t inputs = g.groups * g.inputs, outputs = g.groups * g.outputs;
    const std::string weights = constant("p", {inputs, 3, 1, 1}) + "," +
                                constant("w", {outputs, g.inputs, 3, 2}) + "," +
                                constant("b", {outputs}) + "," + constant("z", {outputs, 3, 1, 1});
    for (const char* attributes :
         {"pads = [1, 0, 1, 1]", "strides = [2, 2], pads = [1, 1, 1, 1]",
          "strides = [1, 2], dilations = [2, 3], pads = [0, 3, 2, 3]", "strides = [3, 1]"})
      for (const char* activation : {"Relu", "Swish"}) {
        const auto kernels =
            agree(weights,
                  "a = Conv (x, p)  c = Conv <group = " + std::to_string(g.groups) + ", " +
                      attributes + "> (a, w, b)  y = " + activation + " (c)",
                  {{1, 3, 9, 21}, {2, 3, 5, 5}, {1, 3, 4, 7}});
        EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "block_conv_f32"), 2);
      }
    const auto kernels = agree(weights,
                               "a = Conv (x, p)  c = Conv <group = " + std::to_string(g.groups) +
                                   ", pads = [1, 1, 1, 0]> (a, w)  d = Conv (x, z)  y = Add (c, d)",
                               {{2, 3, 8, 8}});
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "block_conv_f32"), 3);
  }
}

TEST_P(Networks, BlockedConvolutionsOfGroupsThatFillBlocksByTwo) {
  // By Winograd's filtering two groups are one; of an odd number, or few tiles, they are not.
  for (const auto& [groups, channels] :
       {std::pair<int64_t, int64_t>{2, 24}, {6, 24}, {3, 24}, {2, 40}, {4, 56}}) {
    const int64_t all = groups * channels;
    const std::string weights = constant("p", {all, 3, 1, 1}) + "," +
                                constant("w", {all, channels, 3, 3}) + "," + constant("b", {all}) +
                                "," + constant("z", {all, 3, 1, 1});
    const std::string conv =
        "c = Conv <group = " + std::to_string(groups) + ", pads = [1, 1, 1, 1]> ";
    for (const char* rest :
         {"(a, w, b)  y = Relu (c)", "(a, w)  d = Conv (x, z)  y = Add (c, d)"}) {
      const auto kernels = agree(weights, "a = Conv (x, p)  " + conv + rest,
                                 {{1, 3, 18, 29}, {3, 3, 9, 10}, {1, 3, 7, 7}});
      EXPECT_GE(std::count(kernels.begin(), kernels.end(), "block_conv_f32"), 2);
    }
  }
}

// Of so few inputs that registers hold them: outputs that end within what is done at a time, in
// groups, with what is added behind them, and of weights that come with the input.
TEST_P(Networks, ConvolutionsOfFewInputs) {
  struct Case {
    std::vector<int64_t> x, w;
    const char* attributes;
  };
  for (const Case& c : {Case{{2, 1, 911}, {70, 1, 10}, "strides = [5]"},
                        Case{{1, 1, 1200}, {40, 1, 9}, "strides = [3], pads = [4, 2]"},
                        Case{{1, 2, 17, 21}, {33, 2, 2, 2}, "pads = [1, 0, 1, 0]"},
                        Case{{3, 4, 30, 11}, {64, 2, 5, 1}, "group = 2, pads = [2, 0, 0, 0]"},
                        Case{{1, 9, 8, 9}, {93, 3, 1, 3}, "group = 3"},
                        Case{{1, 1, 40}, {32, 1, 1}, "strides = [1]"}}) {
    const std::string conv = std::string("Conv <") + c.attributes + "> (x, w, b)";
    const std::string constants = constant("w", c.w) + "," + constant("b", {c.w[0]});
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      agree(constants, "y = " + conv, {c.x});
      agree(constants, "c = " + conv + " y = Relu (c)", {c.x});
      agree(constants, "c = " + conv + " s = Sigmoid (c) y = Mul (c, s)", {c.x});
      agree(constants, "c = " + conv + " a = Sin (c) d = Cos (c) y = Add (a, d)", {c.x});
      set_thread_count(0);
    }
    agree(constants,
          std::string("m = ReduceMax <keepdims = 0> (x) v = Mul (w, m) y = Conv <") + c.attributes +
              "> (x, v, b)",
          {c.x});
  }
}

// To few channels, which give channels first unless blocks are read of them.
TEST_P(Networks, BlockedConvolutionsOfFewOutputs) {
  struct Case {
    std::vector<int64_t> x, w;
    const char* attributes;
  };
  const Case cases[] = {
      {{1, 64, 20, 33}, {3, 64, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{2, 32, 9, 14}, {3, 32, 9, 9}, "pads = [4, 4, 4, 4]"},
      {{1, 40, 12, 12}, {1, 40, 5, 5}, "pads = [2, 2, 2, 2]"},
      {{1, 17, 11, 21}, {2, 17, 3, 3}, "pads = [1, 0, 2, 3]"},
      {{3, 30, 10, 9}, {4, 30, 3, 2}, "pads = [0, 1, 0, 0]"},
      {{1, 16, 9, 30}, {5, 16, 3, 3}, "strides = [1, 2], pads = [1, 1, 1, 1]"},
      {{2, 48, 17, 19}, {6, 48, 3, 3}, "strides = [2, 3], dilations = [2, 1], pads = [2, 0, 2, 0]"},
      {{1, 32, 16, 16}, {4, 32, 3, 3}, "dilations = [5, 6], pads = [5, 6, 5, 6]"},
      {{1, 20, 7, 40}, {3, 20, 1, 1}, "strides = [1, 1]"},
      {{2, 64, 1, 700}, {1, 64, 1, 7}, "pads = [0, 3, 0, 3]"},
      {{1, 24, 600, 1}, {2, 24, 5, 1}, "pads = [2, 0, 2, 0]"},
      {{1, 18, 5, 3}, {4, 18, 5, 5}, "pads = [2, 2, 2, 2]"},
      {{1, 33, 2, 2}, {1, 33, 3, 3}, "pads = [4, 4, 4, 4]"},
      {{1, 16, 3, 5}, {6, 16, 4, 6}, "pads = [3, 1, 0, 0]"},
      {{1, 16, 9, 30}, {4, 16, 1, 1}, "strides = [1, 1]"},
  };
  for (const Case& c : cases) {
    const std::string conv = std::string("Conv <") + c.attributes + "> (h, w, b)";
    const std::string constants = constant("w", c.w) + "," + constant("b", {c.w[0]}) + "," +
                                  constant("u", {c.x[1], c.x[1], 1, 1}) + "," +
                                  constant("v", {24, c.w[0], 1, 1}) + "," +
                                  constant("f", {c.w[0], c.w[0], 1, 1});
    const std::string region = "g = Conv (x, u)\n h = Tanh (g)\n a = " + conv + "\n";
    // As they are, with what goes into the tiles, behind them and beside them.
    for (const char* rest :
         {"y = Identity (a)", "y = Relu (a)", "c = Sigmoid (a)\n y = Cos (c)",
          "c = Sin (a)\n y = Add (a, c)", "y = Conv (a, v)", "c = Conv (a, f)\n y = Sub (c, a)"})
      agree(constants, region + rest, {c.x});
    // Added to what lies in blocks, where that lies.
    agree(constants + "," + constant("w2", c.w),
          region + "c = Conv <" + c.attributes + "> (h, w2)\n d = Add (a, c)\n y = Conv (d, v)",
          {c.x});
    agree(constants,
          region + "c = Softmax <axis = 1> (a)\n d = " + conv +
              "\n e = Add (c, d)\n"
              "y = LeakyRelu (e)",
          {c.x});
  }
  const auto line = agree(constant("w", {1, 32, 7}) + "," + constant("u", {32, 32, 3}),
                          "a = Conv <pads = [1, 1]> (x, u)\n b = LeakyRelu (a)\n"
                          "c = Conv <pads = [3, 3]> (b, w)\n y = Tanh (c)",
                          {{2, 32, 900}});
  EXPECT_EQ(std::find(line.begin(), line.end(), "unblock_channels_f32"), line.end());
}

TEST_P(Networks, BlockedLines) {
  const std::string weights = constant("w", {40, 24, 3}) + "," + constant("wide", {128, 128, 3}) +
                              "," + constant("v", {40, 33, 4}) + "," + constant("d", {33, 1, 5}) +
                              "," + constant("first", {64, 1, 9}) + "," + constant("b", {64}) +
                              "," + constant("u", {7, 64, 11});
  for (const char* attributes :
       {"pads = [1, 1]", "strides = [2]", "dilations = [3], pads = [0, 4]",
        "auto_pad = \"SAME_UPPER\", strides = [2]", "auto_pad = \"SAME_LOWER\", dilations = [2]"}) {
    const std::string conv = std::string("Conv <") + attributes + ">";
    agree(weights, "y = " + conv + " (x, w)", {{1, 24, 50}, {3, 24, 17}, {2, 24, 131}});
    agree(weights,
          "a = " + conv + " (x, w)  b1 = Relu (a)  c = ConvTranspose <strides = [2], " +
              "pads = [1, 2], output_padding = [1]> (b1, v)  y = Conv <group = 33, " +
              "pads = [2, 2]> (c, d)",
          {{1, 24, 50}, {2, 24, 9}});
    agree(weights, "y = " + conv + " (x, wide)", {{1, 128, 60}, {2, 128, 33}});
  }
  const auto kernels =
      agree(weights, "a = Conv <strides = [4]> (x, first, b)  y = Conv <pads = [5, 5]> (a, u)",
            {{1, 1, 400}, {2, 1, 77}});
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "block_conv_f32"), 2);
}

// Images of one column, windows that cover rows from end to end, and channels of narrow rows are
// convolved as one row: with strides, dilations and padding at both ends, whether channels come in
// blocks or first.
TEST_P(Networks, ConvolutionsOfNarrowImages) {
  struct Case {
    std::vector<int64_t> kernel;  // of 32 channels
    int64_t width;
    const char* attributes;
  };
  for (const Case& c :
       {Case{{5, 1}, 1, "pads = [2, 0, 1, 0]"},
        Case{{4, 1}, 1, "pads = [1, 0, 3, 0], strides = [3, 2]"},
        Case{{3, 3}, 1, "pads = [2, 1, 2, 1], dilations = [2, 1]"},
        Case{{3, 4}, 4, "pads = [1, 0, 2, 0]"},
        Case{{4, 3}, 3, "pads = [0, 0, 1, 0], strides = [2, 3]"},
        Case{{2, 3}, 3, "dilations = [3, 1]"}, Case{{3, 5}, 3, "pads = [1, 1, 1, 1]"},
        Case{{9, 1}, 5, "pads = [4, 0, 3, 0]"},
        Case{{3, 1}, 7, "pads = [2, 0, 2, 0], dilations = [2, 1]"},
        Case{{3, 1}, 7, "pads = [1, 0, 0, 0], strides = [2, 1]"}}) {
    const std::vector<int64_t> x = {2, 32, 21, c.width};
    const std::string list(c.attributes);
    const std::string weights = constant("d", {32, 1, c.kernel[0], c.kernel[1]}) + "," +
                                constant("w", {40, 32, c.kernel[0], c.kernel[1]}) + "," +
                                constant("p", {32, 32, 1, 1}) + "," + constant("b", {32});
    agree(weights, "y = Conv <group = 32, " + list + "> (x, d, b)", {x});
    agree(weights, "y = Conv <" + list + "> (x, w)", {x, {1, 32, 60, c.width}});
    const auto kernels = agree(
        weights, "a = Conv (x, p, b)  c = Conv <group = 32, " + list + "> (a, d)  y = Conv (c, p)",
        {x});
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "block_conv_f32"), 3);
    agree(weights, "a = Conv (x, p)  c = Conv <" + list + "> (a, w)  y = Relu (c)", {x});
  }
  // Depthwise, few pixels to a row.
  for (const auto& [width, attributes] : {std::pair<int64_t, const char*>{3, "pads = [1, 1, 1, 1]"},
                                          {4, "pads = [1, 1, 1, 1]"},
                                          {5, "pads = [1, 1, 1, 1]"},
                                          {6, "pads = [1, 1, 0, 1]"},
                                          {9, "pads = [1, 1, 1, 1], strides = [2, 2]"},
                                          {11, "pads = [0, 0, 1, 1], strides = [1, 2]"}})
    agree(constant("d", {32, 1, 3, 3}) + "," + constant("p", {32, 32, 1, 1}),
          std::string("a = Conv (x, p)  b = Relu (a)  c = Conv <group = 32, ") + attributes +
              "> (b, d)  y = Conv (c, p)",
          {{2, 32, 21, width}});
  // With depth, planes as rows, and a sum.
  for (const char* attributes :
       {"pads = [1, 0, 0, 2, 0, 0]", "strides = [2, 1, 1], pads = [1, 0, 0, 0, 0, 0]",
        "dilations = [2, 1, 1]", "strides = [1, 2, 1]", "pads = [0, 1, 0, 0, 0, 0]"}) {
    const std::string list(attributes);
    const std::string weights = constant("w", {8, 6, 3, 1, 1}) + "," + constant("b", {8}) + "," +
                                constant("d", {6, 1, 3, 1, 1});
    for (const std::vector<int64_t>& x :
         {std::vector<int64_t>{2, 6, 7, 5, 4}, {1, 6, 5, 9, 1}, {1, 6, 6, 1, 1}}) {
      agree(weights, "c = Conv <" + list + "> (x, w, b)  y = Relu (c)", {x});
      agree(weights, "y = Conv <group = 6, " + list + "> (x, d)", {x});
    }
  }
  agree(constant("w", {8, 6, 3, 3, 1}), "y = Conv <pads = [1, 1, 0, 1, 1, 0]> (x, w)",
        {{1, 6, 5, 9, 1}});
  agree(constant("w", {32, 32, 3, 1}),
        "a = Conv <pads = [1, 0, 1, 0]> (x, w)  b = Relu (a)  c = Conv <pads = [1, 0, 1, 0]> (b, "
        "w)  y = Add (c, a)",
        {{1, 32, 30, 1}, {2, 32, 17, 1}});
  for (const char* list : {"strides = [4, 1]", "strides = [2, 1], pads = [1, 0, 0, 0]",
                           "strides = [3, 2], dilations = [2, 1], output_padding = [1, 0]"})
    for (const int64_t width : {1, 2, 5, 8, 9}) {
      const std::string transposed = std::string("ConvTranspose <") + list + "> ";
      const std::string weights = constant("w", {32, 20, 4, 1}) + "," + constant("b", {20}) + "," +
                                  constant("p", {32, 32, 1, 1});
      agree(weights, "y = " + transposed + "(x, w, b)", {{2, 32, 9, width}});
      agree(weights, "a = Conv (x, p)  c = " + transposed + "(a, w, b)  y = Relu (c)",
            {{2, 32, 9, width}});
    }
}

// Of images of few rows, rows of the kernel that see padding alone are left out: with channels that
// fill blocks, that do not, and fewer than a block, several chunks of weights, and what follows in
// tiles or behind them.
TEST_P(Networks, ConvolutionsOfFewRows) {
  for (const int64_t channels : {8, 16, 40, 96, 272})
    for (const char* attributes :
         {"pads = [1, 1, 1, 1]", "pads = [2, 1, 2, 1], dilations = [2, 1]",
          "pads = [1, 1, 1, 1], strides = [2, 1]", "pads = [2, 0, 0, 0]", "pads = [0, 1, 2, 1]"}) {
      const std::string list(attributes), in = std::to_string(channels);
      const std::string weights = constant("p", {channels, channels, 1, 1}) + "," +
                                  constant("w", {40, channels, 3, 3}) + "," +
                                  constant("q", {40, channels, 1, 1}) + "," + constant("b", {40});
      for (const int64_t rows : {3, 4, 5}) {
        agree(weights,
              "a = Conv (x, p)  c = Conv <" + list + "> (a, w, b)  d = Gelu (c)  y = Relu (d)",
              {{2, channels, rows, 19}, {1, channels, rows, 5}});
        agree(weights,
              "a = Conv (x, p)  c = Conv <" + list +
                  "> (a, w)  d = Relu (c)  e = Sigmoid (c)  "
                  "y = Mul (d, e)",
              {{1, channels, rows, 33}});
      }
    }
  agree(constant("w", {48, 48, 5, 3}) + "," + constant("b", {48}),
        "a = Conv <pads = [2, 1, 2, 1]> (x, w, b)  r = Relu (a)  "
        "c = Conv <pads = [2, 1, 2, 1]> (r, w)  y = Add (c, a)",
        {{1, 48, 3, 20}, {2, 48, 4, 9}});
}

// Of many neighbours rows are combined first; a number that is none stays.
TEST_P(Networks, BlockedPoolsOfLargeWindows) {
  const std::string weights = constant("w", {20, 3, 3, 3}) + ", float two = {2}, float seven = {7}";
  for (const char* window :
       {"kernel_shape = [5, 5], pads = [2, 2, 2, 2]",
        "kernel_shape = [13, 13], pads = [6, 6, 6, 6]",
        "kernel_shape = [7, 7], strides = [2, 2], pads = [3, 2, 1, 3]",
        "kernel_shape = [3, 3], pads = [1, 1, 1, 1]", "kernel_shape = [4, 6], pads = [3, 0, 0, 5]",
        "kernel_shape = [5, 4], strides = [3, 1], ceil_mode = 1",
        "kernel_shape = [4, 5], dilations = [3, 2], pads = [4, 4, 4, 4]"}) {
    const std::string pool = std::string("Pool <") + window + "> ";
    const std::string before = "c = Conv <pads = [1, 1, 1, 1]> (x, w)\n t = Tanh (c)\n";
    const std::vector<std::vector<int64_t>> shapes = {{2, 3, 21, 23}, {1, 3, 14, 6}};
    agree(weights, before + "y = Average" + pool + "(t)", shapes);
    agree(weights,
          before + "y = Average" + pool.substr(0, pool.size() - 2) + ", count_include_pad = 1> (t)",
          shapes);
    agree(weights,
          "c = Conv <pads = [1, 1, 1, 1]> (x, w)\n d = Div (c, seven)\n a = Add (d, two)\n"
          "n = Sqrt (a)\n p = Max" +
              pool + "(n)\n i = IsNaN (p)\n y = Where (i, seven, p)",
          shapes);
  }
}

TEST_P(Networks, PoolsOfOneColumn) {
  for (const char* pool :
       {"MaxPool <kernel_shape = [3, 1], strides = [2, 1], pads = [1, 0, 1, 0]>",
        "MaxPool <kernel_shape = [2, 1], dilations = [3, 1]>",
        "AveragePool <kernel_shape = [4, 1], strides = [3, 1], pads = [2, 0, 1, 0], ceil_mode = 1>",
        "AveragePool <kernel_shape = [3, 1], pads = [0, 0, 2, 0], count_include_pad = 1>",
        "AveragePool <kernel_shape = [2, 2], pads = [0, 0, 0, 1]>",
        "LpPool <kernel_shape = [3, 1], strides = [2, 1]>"}) {
    const std::string weights = constant("p", {32, 32, 1, 1});
    agree(weights, std::string("y = ") + pool + " (x)", {{2, 32, 29, 1}});
    agree(weights, std::string("a = Conv (x, p)  b = ") + pool + " (a)  y = Conv (b, p)",
          {{2, 32, 29, 1}, {1, 32, 12, 1}});
  }
}

TEST_P(Networks, BlockedRegions) {
  const std::string weights =
      constant("w", {40, 3, 3, 3}) + "," + constant("v", {24, 40, 1, 1}) + "," +
      constant("u", {40, 24, 1, 1}) + "," + constant("d", {40, 1, 3, 3}) + "," +
      constant("s", {1, 40, 1, 1}) + "," + constant("t", {32, 40, 3, 3}) + "," +
      constant("five", {5, 3, 1, 1}) + "," + constant("pair", {2, 3, 1, 1}) + "," +
      constant("eighty", {4, 88, 1, 1}) +
      ", float one = {1.5}, float[4] twice = {1, 1, 2, 2}, float[4] uneven = {1, 1, 0.7, 1.6}, "
      "int64[2] sizes = {23, 7}, int64[8] pads = {0, 0, 2, 1, 0, 0, 1, 3}, "
      "int64[2] last = {2, 3}, int64[4] two = {2, 0, 1, 3}, "
      "int64[2] low = {1, 2}, int64[2] ends = {-1, 9}, int64[2] steps = {1, 2}, "
      "int64[3] parts = {16, 16, 8}, int64[2] odd = {10, 30}, "
      "int64[1] from = {-24}, int64[1] ends2 = {32}, int64[1] channels = {-3}";
  const std::vector<std::vector<int64_t>> shapes = {{1, 3, 19, 22}, {2, 3, 11, 9}};
  const std::string stem = "a = Conv <pads = [1, 1, 1, 1]> (x, w)\n";
  for (
      const char* rest : {
          "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 0, 1, 1]> (a)",
          "y = MaxPool <kernel_shape = [2, 3], strides = [2, 2], ceil_mode = 1, dilations = [2, "
          "1]> (a)",
          "y = AveragePool <kernel_shape = [3, 2], strides = [1, 2], pads = [1, 1, 1, 0]> (a)",
          "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (a)",
          "y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (a)",
          "y = GlobalAveragePool (a)",
          "y = GlobalMaxPool (a)",
          // The gate of squeeze and excite.
          "g = GlobalAveragePool (a)\n h = Conv (g, v)\n i = Relu (h)\n j = Conv (i, u)\n"
          "k = HardSigmoid (j)\n y = Mul (a, k)",
          // Depthwise, a residual, a value that leaves the region and comes back.
          "b = Conv <group = 40, pads = [1, 1, 1, 1]> (a, d)\n c = Clip (b, , one)\n"
          "e = Add (a, c)\n f = Softmax <axis = 1> (e)\n g = Conv (f, v)\n h = Conv (e, v)\n"
          "y = Sub (g, h)",
          // Constants: one of all, one of each channel; the other way round.
          "b = Mul (a, s)\n c = Div (b, s)\n e = PRelu (c, s)\n y = Add (one, e)",
          // Channels that fill their blocks side by side, and others after them.
          "b = Conv <pads = [1, 1, 1, 1]> (a, t)\n c = Tanh (b)\n e = Concat <axis = 1> (b, c, a)\n"
          "f = Relu (e)\n y = MaxPool <kernel_shape = [2, 2]> (f)",
          "b = Conv <pads = [1, 1, 1, 1]> (a, t)\n e = Concat <axis = -3> (a, b)\n y = Neg (e)",
          "b = Concat <axis = 2> (a, a)\n y = Conv (b, v)",
          // Channels that begin inside of a block, for those who read blocks.
          "b = Conv (a, v)\n c = Concat <axis = 1> (a, b, b)\n e = Relu (c)\n y = Conv (e, eighty)",
          "b = Conv (x, five)\n c = Concat <axis = 1> (b, b, b, b, b)\n y = Add (c, c)",
          "b = Conv (x, pair)\n e = Relu (b)\n f = Abs (b)\n"
          "c = Concat <axis = 1> (e, b, f, b, e, e, b, b, f, a, e)\n y = Add (c, c)",
          "b = Conv (x, five)\n g = GlobalAveragePool (b)\n c = Concat <axis = 1> (g, g)\n"
          "y = Mul (c, one)",
          // Height and width resized, padded, cut; whole blocks of channels, and others.
          "b = Resize <mode = \"linear\"> (a, , twice)\n y = Conv (b, v)",
          "b = Resize <mode = \"linear\", coordinate_transformation_mode = \"align_corners\", "
          "axes = [-2, 3]> (a, , , sizes)\n y = Conv (b, v)",
          "b = Resize <mode = \"cubic\"> (a, , uneven)\n y = Conv (b, v)",
          "b = Resize <mode = \"linear\", antialias = 1> (a, , uneven)\n y = Conv (b, v)",
          "b = Resize <mode = \"nearest\"> (a, , twice)\n y = Concat <axis = 1> (b, b)",
          "b = Resize <mode = \"nearest\", nearest_mode = \"floor\"> (a, , uneven)\n"
          "c = Relu (b)\n y = Conv (c, v)",
          "b = Pad <mode = \"reflect\"> (a, pads)\n y = Conv (b, t)",
          "b = Pad <mode = \"edge\"> (a, two, , last)\n y = Conv (b, v)",
          "b = Pad (a, two, one, last)\n y = MaxPool <kernel_shape = [2, 2]> (b)",
          "b = Slice (a, low, ends, last, steps)\n y = Conv (b, v)",
          "b = Conv (a, t)\n p, q = Split <axis = 1, num_outputs = 2> (b)\n y = Sub (p, q)",
          "p, q, r = Split <axis = 1> (a, parts)\n s1 = Tanh (p)\n s2 = Neg (r)\n"
          "y = Concat <axis = 1> (s1, q, s2)",
          "p, q = Split <axis = 1> (a, odd)\n y = Relu (q)",
          "b = Slice (a, from, ends2, channels)\n y = Neg (b)",
      })
    agree(weights, stem + rest, shapes);
  // The value inside is an output, too.
  agree(weights, stem + "y = Identity (a)\n z = Conv (a, v)", shapes);
}

// Attention over the pixels of an image, whose scores are never written.
TEST_P(Networks, AttentionOfPixels) {
  const std::string weights =
      constant("a", {8, 20, 1, 1}) + "," + constant("b", {8, 20, 1, 1}) + "," +
      constant("c", {20, 20, 1, 1}) + "," + constant("s", {20, 20, 3, 3}) +
      ", float tenth = {0.1}, int64[3] flat = {0, 0, -1}, int64[4] image = {0, 0, 28, 30}";
  const auto kernels =
      agree(weights,
            "g = Conv <pads = [1, 1, 1, 1]> (x, s)\n h = Tanh (g)\n"
            "q = Conv (h, a)\n k = Conv (h, b)\n v = Conv (h, c)\n"
            "q1 = Reshape (q, flat)\n k1 = Reshape (k, flat)\n v1 = Reshape (v, flat)\n"
            "q2 = Transpose <perm = [0, 2, 1]> (q1)\n p = MatMul (q2, k1)\n z = Mul (p, tenth)\n"
            "w = Softmax <axis = -1> (z)\n u = Transpose <perm = [0, 2, 1]> (w)\n"
            "m = MatMul (v1, u)\n r = Reshape (m, image)\n y = Add (r, h)",
            {{2, 20, 28, 30}}, true);
  EXPECT_NE(std::find(kernels.begin(), kernels.end(), "attention_f32"), kernels.end());
}

// Many threads cut layers in other ways than one or two do.
TEST_P(Networks, SameBitsOnAnyNumberOfThreads) {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 23]>\nmain (float[1,16,40,41] x) => (y, z) <" +
      constant("w1", {64, 16, 3, 3}) + "," + constant("w2", {128, 64, 1, 1}) + "," +
      constant("w3", {64, 128, 3, 3}) + "," + constant("w4", {64, 64, 3, 3}) + "," +
      constant("w5", {64, 200}) + "," + constant("w6", {200, 96}) + R"(, int64[3] s = {1, 64, -1}> {
        a1 = Conv <pads = [1, 1, 1, 1]> (x, w1)
        r1 = Relu (a1)
        a2 = Conv (r1, w2)
        r2 = Relu (a2)
        a3 = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (r2, w3)
        a4 = Conv <pads = [1, 1, 1, 1]> (a3, w4)
        y = Add (a3, a4)
        f = Reshape (y, s)
        t = Transpose <perm = [0, 2, 1]> (f)
        m = MatMul (t, w5)
        g = Gelu (m)
        n = MatMul (g, w6)
        z = Attention <q_num_heads = 3, kv_num_heads = 3> (n, n, n)
      })";
  std::vector<float> values(16 * 40 * 41);
  for (float& value : values) value = number();
  const auto run = [&](int threads) {
    set_thread_count(threads);
    auto model = parse_text(text);
    EXPECT_TRUE(model) << model.error().message;
    auto session = Session::create(*std::move(model), SessionOptions{});
    EXPECT_TRUE(session) << session.error().message;
    const int64_t dims[] = {1, 16, 40, 41};
    auto got = (*session)->run({{"x", Tensor::of<float>(DType::kFloat32, dims, values)}});
    EXPECT_TRUE(got) << got.error().message;
    set_thread_count(0);
    return output_bits(*got);
  };
  const std::vector<std::byte> one = run(1);
  for (const int threads : {2, 4, 7, 16, 37}) EXPECT_TRUE(run(threads) == one) << threads;
}

INSTANTIATE_TEST_SUITE_P(Isa, Networks,
                         ::testing::Values(Isa::kSse4, Isa::kAvx2, Isa::kAvx512, Isa::kNeon),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace tombolo
