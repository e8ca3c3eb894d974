// Quantised convolutions, and what stands between them.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "quantised_fixture.h"

namespace tombolo {
namespace {

struct Window {
  int64_t batch, in, out, groups, height, width, kernel, stride, dilation, pad;
  int64_t kernel_x = 0;  ///< 0: the kernel is square
};

TEST_F(Quantised, Convolutions) {
  const Window windows[] = {{1, 3, 18, 1, 19, 23, 7, 2, 1, 3},
                            {2, 24, 40, 1, 7, 9, 1, 1, 1, 0},
                            {1, 70, 33, 1, 9, 8, 3, 1, 1, 1},
                            {1, 64, 64, 1, 14, 14, 3, 2, 1, 1},
                            {2, 17, 5, 1, 6, 11, 1, 2, 1, 0},
                            {1, 8, 48, 1, 12, 40, 3, 1, 2, 2},
                            {1, 12, 20, 4, 9, 9, 3, 1, 1, 1},
                            {2, 37, 37, 37, 10, 9, 3, 1, 1, 1},
                            {1, 64, 64, 64, 15, 15, 5, 2, 1, 2},
                            {1, 130, 16, 1, 1, 1, 1, 1, 1, 0},
                            {1, 5, 7, 1, 5, 5, 3, 1, 1, 0},
                            {1, 128, 130, 1, 5, 5, 3, 1, 1, 1},
                            {1, 24, 24, 24, 7, 11, 3, 1, 1, 1},
                            {1, 96, 96, 96, 9, 13, 3, 2, 1, 1},
                            {2, 32, 32, 32, 6, 9, 1, 1, 1, 0},
                            {1, 65, 65, 65, 8, 10, 4, 1, 1, 2},
                            {1, 20, 20, 20, 7, 9, 1, 1, 1, 0, 3},
                            {1, 70, 70, 70, 7, 9, 2, 1, 1, 1, 5},
                            {1, 24, 24, 24, 5, 30, 3, 1, 1, 1},
                            {1, 144, 144, 144, 21, 22, 3, 1, 1, 1},
                            {1, 40, 72, 1, 33, 31, 1, 1, 1, 0},
                            {1, 16, 40, 1, 30, 29, 3, 1, 1, 1},
                            {2, 48, 33, 1, 13, 17, 3, 1, 1, 2},
                            {1, 21, 64, 1, 30, 29, 3, 1, 1, 1},
                            {1, 32, 18, 1, 1, 40, 3, 1, 1, 1},
                            {1, 64, 16, 1, 12, 5, 3, 1, 1, 0},
                            {1, 56, 56, 56, 9, 8, 3, 1, 1, 1},
                            {1, 20, 40, 1, 17, 15, 3, 1, 9, 9},
                            {1, 50, 50, 50, 6, 7, 3, 2, 1, 1},
                            // Positions of the kernel that only ever meet padding.
                            {1, 20, 24, 1, 12, 12, 3, 1, 24, 24},
                            {2, 20, 20, 20, 12, 11, 3, 1, 24, 24}};
  int turn = 0;
  for (int round = 0; round < 2; ++round)
    for (const Window& w : windows) {
      const int64_t kernel_x = w.kernel_x != 0 ? w.kernel_x : w.kernel;
      const bool x_signed = turn % 2 == 1, w_signed = turn % 3 != 2, y_signed = turn % 4 == 3;
      ++turn;
      const std::string xt = x_signed ? "int8" : "uint8", wt = w_signed ? "int8" : "uint8",
                        yt = y_signed ? "int8" : "uint8";
      const std::vector<int64_t> x = {w.batch, w.in, w.height, w.width};
      const std::string text =
          "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + xt + "[" + list(x) + "] x) => (" +
          yt + "[n,m,h,k] y) <float sx = {0.02}, " +
          constant(xt, "zx", {}, x_signed ? -90 : 0, 120) + ", " +
          constant(wt, "w", {w.out, w.in / w.groups, w.kernel, kernel_x}, w_signed ? -128 : 0,
                   w_signed ? 127 : 255) +
          ", " + (turn % 2 == 0 ? "float sw = {0.03}" : scales("sw", w.out)) + ", " +
          zero_points(w_signed, round * (1 + turn % 2), w.out) + ", float sy = {" +
          std::to_string(0.002 * static_cast<double>(w.in / w.groups * w.kernel + 20)) + "}, " +
          constant(yt, "zy", {}, y_signed ? -50 : 0, 100) + ", " +
          constant("int32", "b", {w.out}, -5000, 5000) + "> {\n y = QLinearConv <kernel_shape = [" +
          list({w.kernel, kernel_x}) + "], strides = [" + list({w.stride, w.stride}) +
          "], dilations = [" + list({w.dilation, w.dilation}) + "], pads = [" +
          list({w.pad, w.pad, w.pad, w.pad}) + "], group = " + std::to_string(w.groups) +
          "> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n";
      agree(text, codes(x, x_signed), 1, "tombolo_qlinear_conv");
    }
}

TEST_F(Quantised, ConvolutionsAlongOneAxisAndThree) {
  for (const bool along_one : {true, false})
    for (const int64_t groups : {1, 2, 12})
      for (const bool x_signed : {false, true})
        for (const bool w_signed : {false, true})
          for (const int kind : {0, 1, 2}) {
            const std::string xt = x_signed ? "int8" : "uint8", wt = w_signed ? "int8" : "uint8";
            const std::vector<int64_t> x =
                along_one ? std::vector<int64_t>{2, 12, 45} : std::vector<int64_t>{2, 12, 3, 5, 9};
            const std::vector<int64_t> w = along_one
                                               ? std::vector<int64_t>{24, 12 / groups, 3}
                                               : std::vector<int64_t>{24, 12 / groups, 2, 1, 3};
            const std::string weights =
                constant(wt, "w", w, w_signed ? -128 : 0, w_signed ? 127 : 255) + ", " +
                scales("sw", 24) + ", " + zero_points(w_signed, kind, 24);
            // As inputs with values they might change.
            for (const bool change : {false, true}) {
              const std::string text =
                  "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + xt + "[" + list(x) +
                  "] x" + (change ? ", " + weights : std::string()) + ") => (uint8[" +
                  (along_one ? "n,m,k" : "n,m,d,h,k") + "] y) <float sx = {0.02}, " +
                  constant(xt, "zx", {}, x_signed ? -90 : 0, 120) +
                  (change ? std::string() : ", " + weights) +
                  ", float sy = {0.1}, uint8 zy = {90}, " +
                  constant("int32", "b", {24}, -5000, 5000) + "> {\n y = QLinearConv <pads = [" +
                  (along_one ? "2, 1" : "1, 0, 2, 0, 0, 1") +
                  "], group = " + std::to_string(groups) +
                  "> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n";
              agree(
                  text, codes(x, x_signed), 1,
                  change || (!along_one && groups == 12) ? "qlinear_conv" : "tombolo_qlinear_conv");
            }
          }
}

TEST_F(Quantised, FactorsOfChannels) {
  int turn = 0;
  for (const std::vector<int64_t>& x :
       {std::vector<int64_t>{2, 37, 5, 7}, {1, 3, 100}, {3, 130, 1, 1}, {2, 16, 2, 3, 4}, {5, 70}})
    for (int round = 0; round < 4; ++round) {
      const bool x_signed = turn % 2 == 1, y_signed = turn % 3 == 1, quantised = turn % 4 > 1;
      ++turn;
      const std::string xt = x_signed ? "int8" : "uint8", yt = y_signed ? "int8" : "uint8";
      const std::string dims = x.size() == 2   ? "n,c"
                               : x.size() == 3 ? "n,c,w"
                               : x.size() == 4 ? "n,c,h,w"
                                               : "n,c,d,h,w";
      const std::string factor =
          quantised ? constant("int8", "q", {x[1]}, -100, 100) + ", float sq = {0.02}"
                    : scales("k", x[1]);
      // What the last axis has, or a normalisation of the second one.
      const std::string body = x.size() == 2 && round < 2
                                   ? " m = Mul (f, k)\n t = Add (e, m)"
                                   : " t = BatchNormalization (f, k, e, e, v)";
      const std::string text =
          "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + xt + "[" + list(x) + "] x) => (" +
          yt + "[" + dims + "] y) <float sx = {0.02}, " +
          constant(xt, "zx", {}, x_signed ? -90 : 0, 120) + ", " + factor + ", " +
          scales("e", x[1]) + ", " + scales("v", x[1]) + ", float sy = {0.1}, " +
          constant(yt, "zy", {}, y_signed ? -50 : 0, 100) + "> {\n" +
          (quantised ? " k = DequantizeLinear (q, sq)\n" : "") +
          " f = DequantizeLinear (x, sx, zx)\n" + body + "\n " +
          (turn % 2 == 0 ? "r = Relu (t)" : "r = Identity (t)") +
          "\n y = QuantizeLinear (r, sy, zy)\n}\n";
      agree(text, codes(x, x_signed), 1, "tombolo_qlinear_affine");
    }
}

TEST_F(Quantised, NormalisationsOfImages) {
  int turn = 0;
  for (const std::vector<int64_t>& x : {std::vector<int64_t>{2, 5, 9, 11},
                                        {1, 37, 70},
                                        {2, 70, 3, 5, 7},
                                        {1, 3, 300, 301},
                                        {1, 16, 80, 90}})
    for (const bool last : {false, true}) {  // behind a convolution its channels are last
      const bool x_signed = turn % 2 == 1, y_signed = turn % 3 == 1;
      ++turn;
      const std::string xt = x_signed ? "int8" : "uint8", yt = y_signed ? "int8" : "uint8";
      std::vector<int64_t> w = {x[1], x[1]};
      w.resize(x.size(), 1);
      const std::string text =
          "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + xt + "[" + list(x) + "] x) => (" +
          yt + "[" + list(x) + "] y) <float sx = {0.02}, " +
          constant(xt, "zx", {}, x_signed ? -90 : 0, 120) + ", " + scales("k", x[1]) + ", " +
          scales("e", x[1]) + ", float sy = {0.01}, " +
          constant(yt, "zy", {}, y_signed ? -50 : 0, 100) + ", " +
          constant("int8", "w", w, -128, 127) +
          ", float sw = {0.01}, float sq = {0.1}> {\n"
          " f = DequantizeLinear (x, sx, zx)\n" +
          (last ? " g = DequantizeLinear (w, sw)\n c = Conv (f, g)\n q = QuantizeLinear (c, sq, "
                  "zx)\n"
                  " h = DequantizeLinear (q, sq, zx)\n"
                : " h = Identity (f)\n") +
          " t = InstanceNormalization <epsilon = 0.01> (h, k, e)\n " +
          (turn % 2 == 0 ? "r = Relu (t)" : "r = Identity (t)") +
          "\n y = QuantizeLinear (r, sy, zy)\n}\n";
      agree(text, codes(x, x_signed), last ? 2 : 1, "tombolo_qlinear_instance_norm");
    }
}

// Hardly any variance: a code is many steps.
TEST_F(Quantised, NormalisationsOfFlatImages) {
  for (const int64_t other : {0, 1, 50}) {
    const std::string text =
        "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (uint8[1,2,40,50] x) => "
        "(uint8[1,2,40,50] y) "
        "<float sx = {0.02}, uint8 zx = {200}, float[2] k = {1, -3}, float[2] e = {0.5, 0.25}, "
        "float sy "
        "= {0.0001}, uint8 zy = {100}> {\n f = DequantizeLinear (x, sx, zx)\n"
        " t = InstanceNormalization <epsilon = 1e-10> (f, k, e)\n y = QuantizeLinear (t, sy, "
        "zy)\n}\n";
    std::vector<uint8_t> values(2 * 40 * 50, 201);
    for (int64_t i = 0; i < other; ++i) values[static_cast<size_t>(i * 37)] = 202;
    const int64_t dims[] = {1, 2, 40, 50};
    agree(text, Tensor::of<uint8_t>(DType::kUInt8, dims, values), 1,
          "tombolo_qlinear_instance_norm");
  }
}

// Chains divide by the reciprocal: to the bit as a division does, and most where that would show.
TEST_F(Quantised, CodesOf16BitsAreRoundedFloats) {
  for (int round = 0; round < 12; ++round) {
    const bool is_signed = round % 2 == 1;
    const float scale = std::ldexp(static_cast<float>(integer(1 << 20, 1 << 24)), -30 - round);
    std::vector<float> numbers = {0.0f,
                                  -0.0f,
                                  1e-40f,
                                  -1e-40f,
                                  3e38f,
                                  -3e38f,
                                  std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity()};
    while (numbers.size() < 4000) {
      const auto code = static_cast<float>(integer(-70000, 70000));
      float x = (code + (numbers.size() % 3 == 0 ? 0.0f : 0.5f)) * scale;
      for (int64_t step = integer(-3, 3); step != 0; step += step < 0 ? 1 : -1)
        x = std::nextafter(x, step < 0 ? -1e30f : 1e30f);
      numbers.push_back(x);
    }
    const int64_t dims[] = {static_cast<int64_t>(numbers.size())};
    const std::string type = is_signed ? "int16" : "uint16";
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(scale));
    const std::string text =
        "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[n] x) => (float[n] y) <float s = "
        "{" +
        std::string(digits) + "}, " + type + " z = {" + (is_signed ? "-300" : "32000") +
        "}, float k = {2}> {\n q = QuantizeLinear (x, s, z)\n d = DequantizeLinear (q, s, z)\n"
        " y = Mul (d, k)\n}\n";
    agree(text, Tensor::of<float>(DType::kFloat32, dims, numbers), 0, "chain");
  }
}

TEST_F(Quantised, TransposedConvolutions) {
  struct Spread {
    std::vector<int64_t> x, w;
    const char* attributes;
  };
  const Spread spreads[] = {
      // A window as wide as its step.
      {{1, 16, 9, 11}, {16, 24, 2, 2}, "strides = [2, 2]"},
      {{2, 70, 7, 6}, {70, 33, 2, 2}, "strides = [2, 2]"},
      {{1, 13, 5, 4}, {13, 8, 3, 3}, "strides = [3, 3]"},
      // Overlapping windows, cropped.
      {{1, 32, 13, 17}, {32, 20, 4, 4}, "strides = [2, 2], pads = [1, 1, 1, 1]"},
      {{2, 24, 8, 9},
       {24, 40, 3, 3},
       "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]"},
      {{1, 12, 6, 7}, {12, 64, 5, 3}, "strides = [2, 1], pads = [2, 0, 1, 1]"},
      {{1, 9, 6, 5}, {9, 16, 3, 3}, "pads = [1, 1, 1, 1]"},
      {{1, 20, 7, 7}, {20, 130, 8, 8}, "strides = [4, 4], pads = [2, 2, 2, 2]"},
      {{1, 16, 6, 6}, {16, 8, 3, 3}, "strides = [2, 2], auto_pad = \"SAME_UPPER\""},
      {{1, 16, 6, 6}, {16, 8, 3, 4}, "strides = [2, 2], output_shape = [13, 12]"},
      // Positions that are dilated, that some outputs see none of, steps of several sizes.
      {{1, 16, 6, 8}, {16, 24, 3, 3}, "strides = [2, 3], dilations = [2, 3]"},
      {{1, 8, 5, 6}, {8, 16, 1, 1}, "strides = [2, 2]"},
      {{1, 12, 5, 7}, {12, 16, 2, 2}, "strides = [1, 3], output_padding = [0, 2]"},
      {{1, 12, 5, 7}, {12, 16, 3, 5}, "strides = [2, 5], pads = [0, 1, 0, 2]"},
      {{1, 10, 4, 6}, {10, 12, 3, 3}, "strides = [3, 2], dilations = [4, 3], pads = [3, 2, 1, 0]"},
      // Groups, lines and volumes.
      {{2, 12, 6, 7}, {12, 10, 4, 4}, "strides = [2, 2], pads = [1, 1, 1, 1], group = 3"},
      {{1, 64, 50}, {64, 32, 16}, "strides = [8], pads = [4, 4]"},
      {{2, 15, 21}, {15, 9, 7}, "strides = [3], pads = [2, 2], output_padding = [1]"},
      {{1, 16, 40}, {16, 16, 3}, "strides = [1], dilations = [5], pads = [5, 5], group = 2"},
      {{1, 16, 3, 5, 6}, {16, 24, 2, 2, 2}, "strides = [2, 2, 2]"},
      {{1, 10, 3, 4, 5},
       {10, 12, 3, 4, 3},
       "strides = [1, 2, 3], pads = [1, 1, 0, 1, 1, 0], output_padding = [0, 1, 0]"},
      {{2, 8, 4, 3, 3}, {8, 8, 3, 3, 3}, "strides = [2, 2, 2], pads = [1, 1, 1, 1, 1, 1]"}};
  int turn = 0;
  for (const int kind : {0, 1})
    for (const Spread& v : spreads) {
      const bool x_signed = turn % 2 == 1, w_signed = turn % 3 != 2, y_signed = turn % 5 == 3;
      const bool each = turn++ % 4 != 0;
      const std::string xt = x_signed ? "int8" : "uint8", wt = w_signed ? "int8" : "uint8",
                        yt = y_signed ? "int8" : "uint8";
      const std::string groups = std::strstr(v.attributes, "group = 3") != nullptr   ? "3"
                                 : std::strstr(v.attributes, "group = 2") != nullptr ? "2"
                                                                                     : "1";
      const int64_t of_group = v.w[1], outputs = of_group * std::stoll(groups);
      std::string w_zero = wt + (each ? "[" + std::to_string(of_group) + "] zw = {" : " zw = {");
      for (int64_t i = 0; i < (each ? of_group : 1); ++i) {
        const int64_t code = kind == 0 ? 128 : (17 + i * 83) % 256;
        w_zero += (i == 0 ? "" : ",") + std::to_string(code - (w_signed ? 128 : 0));
      }
      w_zero += "}";
      const std::string text =
          "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + xt + "[" + list(v.x) +
          "] x) => (" + yt + "[" +
          (v.x.size() == 3   ? "n,m,k"
           : v.x.size() == 4 ? "n,m,h,k"
                             : "n,m,d,h,k") +
          "] y) <float sx = {0.02}, " + constant(xt, "zx", {}, x_signed ? -90 : 0, 120) + ", " +
          constant(wt, "w", v.w, w_signed ? -128 : 0, w_signed ? 127 : 255) + ", " +
          (each ? scales("sw", of_group) : std::string("float sw = {0.03}")) + ", " + w_zero +
          ", float sb = {0.0004}, int32 zb = {0}, float sy = {" + (turn % 2 == 0 ? "0.3" : "0.1") +
          "}, " + constant(yt, "zy", {}, y_signed ? -50 : 0, 100) + ", " +
          constant("int32", "b", {outputs}, -5000, 5000) +
          "> {\n f = DequantizeLinear (x, sx, zx)\n g = DequantizeLinear <axis = 1> (w, sw, zw)\n"
          " c = DequantizeLinear (b, sb, zb)\n t = ConvTranspose <" +
          v.attributes + "> (f, g, c)\n " + (turn % 3 == 0 ? "r = Relu (t)" : "r = Identity (t)") +
          "\n y = QuantizeLinear (r, sy, zy)\n}\n";
      agree(text, codes(v.x, x_signed), 1, "tombolo_qlinear_conv_transpose");
    }
}

TEST_F(Quantised, ConvolutionsOfVolumes) {
  struct Volume {
    std::vector<int64_t> x, w;
    const char* attributes;
  };
  const Volume volumes[] = {
      {{2, 16, 5, 9, 11}, {40, 16, 3, 3, 3}, "pads = [1, 1, 1, 1, 1, 1]"},
      {{1, 1, 8, 10, 9}, {17, 1, 3, 3, 3}, "pads = [1, 1, 1, 1, 1, 1]"},
      {{1, 24, 7, 12, 9}, {32, 24, 2, 2, 2}, "strides = [2, 2, 2]"},
      {{2, 12, 6, 8, 7}, {24, 12, 3, 1, 1}, "strides = [2, 1, 1], pads = [1, 0, 0, 1, 0, 0]"},
      {{1, 10, 9, 7, 8}, {19, 10, 3, 2, 3}, "dilations = [2, 3, 2], pads = [2, 1, 0, 0, 2, 4]"},
      {{2, 20, 3, 6, 5}, {24, 20, 1, 3, 3}, "pads = [0, 1, 1, 0, 1, 1]"},
      {{2, 20, 3, 6, 5}, {24, 20, 1, 1, 1}, "strides = [1, 1, 1]"},
      {{1, 20, 4, 6, 5}, {24, 20, 1, 1, 1}, "strides = [2, 2, 1]"},
      {{1, 8, 1, 9, 9}, {16, 8, 3, 3, 3}, "pads = [2, 1, 1, 2, 1, 1]"},
      {{1, 16, 4, 7, 6}, {24, 4, 3, 3, 2}, "pads = [1, 1, 1, 1, 1, 0], group = 4"}};
  int turn = 0;
  for (const Volume& v : volumes)
    for (const int kind : {0, 2}) {
      const bool x_signed = turn % 2 == 1, w_signed = turn++ % 3 != 2;
      const std::string xt = x_signed ? "int8" : "uint8", wt = w_signed ? "int8" : "uint8";
      const std::string text =
          "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + xt + "[" + list(v.x) +
          "] x) => (uint8[n,m,d,h,k] y) <float sx = {0.02}, " +
          constant(xt, "zx", {}, x_signed ? -90 : 0, 120) + ", " +
          constant(wt, "w", v.w, w_signed ? -128 : 0, w_signed ? 127 : 255) + ", " +
          scales("sw", v.w[0]) + ", " + zero_points(w_signed, kind, v.w[0]) +
          ", float sy = {0.3}, uint8 zy = {90}, " + constant("int32", "b", {v.w[0]}, -5000, 5000) +
          "> {\n y = QLinearConv <" + v.attributes + "> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n";
      agree(text, codes(v.x, x_signed), 1, "tombolo_qlinear_conv");
    }
}

// Without padding fewer results lie one after the other than pixels do.
TEST_F(Quantised, WindowsOfOneRow) {
  for (const int64_t channels : {3, 4, 16})
    for (const int64_t batch : {1, 2})
      for (const int64_t step : {1, 2})
        for (const auto& [height, kernel] : {std::array<int64_t, 2>{6, 2}, {1, 3}, {7, 1}}) {
          const std::vector<int64_t> x = {batch, channels, height, 21};
          const std::string text =
              "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (uint8[" + list(x) +
              "] x) => (uint8[n,m,h,k] y) <float sx = {0.02}, uint8 zx = {120}, " +
              constant("uint8", "w", {24, channels, 1, kernel}, 0, 255) + ", " + scales("sw", 24) +
              ", " + zero_points(false, 2, 24) + ", float sy = {0.1}, uint8 zy = {90}, " +
              constant("int32", "b", {24}, -5000, 5000) + "> {\n y = QLinearConv <strides = [" +
              list({step, step}) + "]> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n";
          agree(text, codes(x, false), 1, "tombolo_qlinear_conv");
        }
}

TEST_F(Quantised, IntegerConvolutions) {
  const Window windows[] = {
      {1, 3, 18, 1, 19, 23, 7, 2, 1, 3}, {2, 24, 40, 1, 7, 9, 1, 1, 1, 0},
      {1, 70, 33, 1, 9, 8, 3, 1, 1, 1},  {1, 8, 48, 1, 12, 40, 3, 1, 2, 2},
      {2, 12, 20, 4, 9, 9, 3, 1, 1, 1},  {2, 37, 37, 37, 10, 9, 3, 1, 1, 1},
      {2, 64, 64, 1, 1, 90, 1, 2, 1, 0}, {1, 20, 24, 1, 12, 12, 3, 1, 24, 24}};
  for (const Window& w : windows)
    for (const bool x_signed : {false, true})
      for (const bool w_signed : {false, true})
        for (const int zeros : {0, 1, 2, 3}) {
          const std::string xt = x_signed ? "int8" : "uint8", wt = w_signed ? "int8" : "uint8";
          const std::vector<int64_t> x = {w.batch, w.in, w.height, w.width};
          const std::string weights =
              constant(wt, "w", {w.out, w.in / w.groups, w.kernel, w.kernel}, w_signed ? -128 : 0,
                       w_signed ? 127 : 255) +
              ", " + zero_points(w_signed, std::max(0, zeros - 1), w.out);
          // As inputs with values they might change.
          for (const bool change : {false, true}) {
            const std::string text =
                "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + xt + "[" + list(x) + "] x" +
                (change ? ", " + weights : std::string()) + ") => (int32[n,m,h,k] y) <" +
                constant(xt, "zx", {}, x_signed ? -90 : 0, 120) +
                (change ? std::string() : ", " + weights) + "> {\n y = ConvInteger <strides = [" +
                list({w.stride, w.stride}) + "], dilations = [" + list({w.dilation, w.dilation}) +
                "], pads = [" + list({w.pad, w.pad, w.pad, w.pad}) +
                "], group = " + std::to_string(w.groups) + "> (x, w" +
                (zeros > 0 ? ", zx, zw" : "") + ")\n}\n";
            agree(text, codes(x, x_signed), 0, "conv_integer");
          }
        }
}

// As quantize_dynamic writes them: with a bias, with a normalisation behind, with neither.
TEST_F(Quantised, DynamicConvolutions) {
  struct Case {
    std::vector<int64_t> x, w;
    const char* attributes;
    const char* kernel = "conv_integer_to_float";
  };
  const Case cases[] = {{{2, 3, 19, 23}, {18, 3, 7, 7}, "strides = [2, 2], pads = [3, 3, 3, 3]"},
                        {{2, 24, 7, 9}, {40, 24, 1, 1}, "group = 1"},
                        {{1, 70, 9, 8}, {33, 70, 3, 3}, "pads = [1, 1, 1, 1]"},
                        {{1, 40, 30, 29}, {33, 40, 3, 3}, "pads = [1, 1, 1, 1]"},
                        {{2, 24, 9, 9}, {32, 6, 3, 3}, "pads = [1, 1, 1, 1], group = 4"},
                        {{2, 12, 45}, {24, 12, 3}, "pads = [2, 1], dilations = [2]"},
                        {{1, 9, 5, 6, 7}, {16, 9, 3, 3, 3}, "pads = [1, 1, 1, 1, 1, 1]"},
                        {{1, 20, 9, 9}, {3, 20, 3, 3}, "pads = [1, 1, 1, 1]", "conv_integer"},
                        {{1, 20, 9, 9}, {20, 1, 3, 3}, "group = 20", "conv_integer"}};
  for (const Case& c : cases)
    for (const bool w_signed : {false, true})
      for (const int kind : {0, 1, 2}) {
        const std::string wt = w_signed ? "int8" : "uint8";
        const int64_t m = c.w[0];
        std::string each = std::to_string(m);
        for (size_t i = 2; i < c.w.size(); ++i) each += ",1";
        const auto channels = [&](const char* name) {
          return given("float[" + each + "] " + name, m,
                       [&](int64_t) { return static_cast<double>(integer(1, 99)) / 300; });
        };
        const std::string text =
            "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[" + list(c.x) +
            "] x) => (y) <" + constant(wt, "w", c.w, w_signed ? -128 : 0, w_signed ? 127 : 255) +
            ", " + zero_points(w_signed, kind, m) + ", float ws = {0.02}, " + channels("b") + ", " +
            channels("es") + ", " + scales("g", m) + ", " + scales("c", m) + ", " + scales("n", m) +
            ", " + scales("v", m) +
            "> {\n q, xs, xz = DynamicQuantizeLinear (x)\n i = ConvInteger <" + c.attributes +
            "> (q, w, xz, zw)\n f = Cast <to = 1> (i)\n s = Mul (xs, ws)\n" +
            (kind == 0   ? " p = Mul (f, s)\n y = Add (p, b)\n"
             : kind == 1 ? " p = Mul (f, s)\n y = BatchNormalization (p, g, c, n, v)\n"
                         : " p = Mul (es, f)\n y = Mul (p, s)\n") +
            "}\n";
        agree_roughly(text, floats(c.x), 1e-5, c.kernel);
      }
}

// The last layers of quantised networks: nothing quantises their results.
TEST_F(Quantised, ConvolutionsToFloats) {
  for (const bool x_signed : {false, true})
    for (const int kind : {0, 1, 2})
      for (const int bias : {0, 1, 2}) {
        const std::string t = x_signed ? "int8" : "uint8", wt = kind == 1 ? "uint8" : "int8";
        const std::string text =
            "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + t +
            "[2,20,9,7] x) => (y) <float sx = {0.02}, " + constant(t, "zx", {}, 0, 120) + ", " +
            constant(wt, "w", {18, 20, 3, 3}, kind == 1 ? 0 : -128, kind == 1 ? 255 : 127) + ", " +
            zero_points(kind != 1, kind, 18) + ", " +
            (kind == 2 ? scales("sw", 18) : "float sw = {0.03}") + ", " + scales("bf", 18) + ", " +
            constant("int32", "bq", {18}, -5000, 5000) +
            ", float sb = {0.0006}> {\n dx = DequantizeLinear (x, sx, zx)\n dw = DequantizeLinear "
            "<axis = 0> (w, sw, zw)\n b = DequantizeLinear (bq, sb)\n y = Conv <pads = [1, 1, 1, "
            "1]> (dx, dw" +
            (bias == 0   ? ""
             : bias == 1 ? ", bf"
                         : ", b") +
            ")\n}\n";
        agree_roughly(text, codes({2, 20, 9, 7}, x_signed), 1e-5, "conv_integer_to_float");
      }
}

TEST_F(Quantised, FunctionsOfBytesAreTables) {
  const std::string head = "<ir_version: 10, opset_import: [\"\" : 24]>\nmain (";
  for (const char* function :
       {"f = HardSwish (d)", "f = HardSigmoid (d)", "f = Swish (d)", "f = Gelu (d)",
        "f = Softplus (d)", "f = Elu <alpha = 0.5> (d)", "f = Clip (d, low, high)",
        "f = Mul (d, low)", "h = HardSigmoid <alpha = 0.25> (d) f = Mul (d, h)",
        "h = Neg (d) g = Exp (h) k = Add (g, high) f = Div (d, k)", "f = Sigmoid (d)",
        "f = LeakyRelu (d)", "f = Identity (d)"})
    for (const bool is_signed : {false, true})
      for (const bool other : {false, true}) {  // the result's type
        const std::string type = is_signed ? "int8" : "uint8",
                          result = is_signed != other ? "int8" : "uint8";
        const std::string values = "<float s = {0.05}, " + type + " z = {" +
                                   (is_signed ? "-3" : "120") + "}, float[1] t = {0.03}, " +
                                   result + "[1] u = {7}, float low = {-1.5}, float high = {2}> {";
        const bool linear = !other && (std::string(function) == "f = Sigmoid (d)" ||
                                       std::string(function) == "f = LeakyRelu (d)");
        agree(head + type + "[a,b,c] x) => (" + result + "[a,b,c] y) " + values +
                  " d = DequantizeLinear (x, s, z) " + function + " y = QuantizeLinear (f, t, u) }",
              codes({3, 50, 37}, is_signed), linear ? 1 : 0,
              !linear              ? "byte_table"
              : function[4] == 'S' ? "qlinear_sigmoid"
                                   : "qlinear_leaky_relu");
      }
}

TEST_F(Quantised, MeansOfPlanes) {
  for (const bool is_signed : {false, true}) {
    const std::string type = is_signed ? "int8" : "uint8";
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{2, 37, 7, 9}, {1, 5, 1, 1}, {3, 6, 40, 50}})
      agree("<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]>\nmain (" + type +
                "[" + list(dims) + "] x) => (" + type + "[a,b,c,d] y) <float s = {0.05}, " + type +
                " z = {11}, float t = {0.004}, " + type +
                " u = {90}> { y = com.microsoft.QLinearGlobalAveragePool (x, s, z, t, u) }",
            codes(dims, is_signed), 1, "qlinear_global_average_pool");
  }
}

TEST_F(Quantised, DynamicLstm) {
  for (const int directions : {1, 2})
    for (const bool is_signed : {false, true})
      for (const bool columns : {false, true}) {
        constexpr int64_t kInput = 20, kHidden = 17;
        const int64_t d = directions, scaled = columns ? d * 4 * kHidden : d;
        const std::string t = is_signed ? "int8" : "uint8";
        const std::vector<int64_t> each =
            columns ? std::vector<int64_t>{d, 4 * kHidden} : std::vector<int64_t>{d};
        const auto step = [&](const char* name) {
          return given("float[" + list(each) + "] " + name, scaled,
                       [&](int64_t) { return static_cast<double>(integer(1, 9)) / 2000; });
        };
        const auto codes_of = [&](const char* name, int64_t rows) {
          return constant(t, name, {d, rows, 4 * kHidden}, is_signed ? -128 : 0,
                          is_signed ? 127 : 255);
        };
        const auto zero = [&](const char* name) {
          const int64_t middle = is_signed ? 0 : 128, apart = directions == 2 && columns ? 4 : 0;
          return constant(t, name, each, middle - apart, middle + apart);
        };
        const std::string text =
            "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]>\nmain (float[9,3," +
            std::to_string(kInput) + "] x) => (y, h, c) <" + codes_of("w", kInput) + ", " +
            codes_of("r", kHidden) + ", " + step("ws") + ", " + zero("wz") + ", " + step("rs") +
            ", " + zero("rz") + ", " +
            given("float[" + list({d, 8 * kHidden}) + "] b", d * 8 * kHidden,
                  [&](int64_t) { return static_cast<double>(integer(-9, 9)) / 20; }) +
            "> {\n y, h, c = com.microsoft.DynamicQuantizeLSTM <hidden_size = " +
            std::to_string(kHidden) + ", direction = \"" +
            (directions == 2 ? "bidirectional" : "forward") +
            "\"> (x, w, r, b, , , , , ws, wz, rs, rz)\n}\n";
        // What rounds a state to another code moves a gate by a step of it.
        agree_roughly(text, floats({9, 3, kInput}), 0.02, "dynamic_quantize_lstm");
      }
}

TEST_F(Quantised, ConvolutionsByBands) {
  // Small images whose rows threads share from the copy to the result: any number of them gives the
  // same, whatever rows of padding, steps and gaps the bands begin and end in.
  struct Case {
    int64_t in, out, groups, height, width, kernel;
    const char* attributes;
  };
  const Case cases[] = {{16, 20, 1, 13, 9, 3, "pads = [1, 1, 1, 1]"},
                        {5, 33, 1, 17, 8, 3, "strides = [2, 2], pads = [0, 1, 1, 0]"},
                        {24, 16, 1, 12, 11, 5, "pads = [4, 2, 0, 1]"},
                        {16, 16, 1, 20, 7, 3, "pads = [3, 3, 3, 3], dilations = [3, 3]"},
                        {32, 32, 2, 14, 10, 3, "strides = [1, 2], pads = [2, 0, 2, 2]"},
                        {3, 8, 1, 40, 33, 7, "strides = [3, 2], pads = [3, 3, 3, 3]"},
                        {16, 24, 1, 30, 6, 1, "pads = [9, 0, 9, 1]"},
                        // Of few channels some pixels are one.
                        {8, 8, 8, 11, 13, 3, "pads = [1, 1, 1, 1]"},
                        {4, 4, 4, 9, 3, 3, "pads = [1, 1, 1, 1]"},
                        {16, 16, 16, 10, 17, 5, "strides = [2, 1], pads = [2, 4, 1, 0]"},
                        {2, 2, 2, 8, 50, 3, "dilations = [1, 4], pads = [0, 3, 0, 2]"},
                        {8, 8, 8, 12, 40, 3, "strides = [1, 2], pads = [1, 0, 1, 1]"}};
  for (const Case& c : cases)
    for (const bool x_signed : {false, true}) {
      const std::string t = x_signed ? "int8" : "uint8";
      const std::string text =
          "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + t + "[1," +
          list({c.in, c.height, c.width}) + "] x) => (uint8[n,m,h,k] y) <float sx = {0.5}, " + t +
          " zx = {7}, " +
          constant("int8", "w", {c.out, c.in / c.groups, c.kernel, c.kernel}, -128, 127) +
          ", float sw = {0.01}, int8 zw = {0}, float sy = {4.5}, uint8 zy = {99}, " +
          constant("int32", "b", {c.out}, -5000, 5000) + "> {\n y = QLinearConv <kernel_shape = [" +
          list({c.kernel, c.kernel}) + "], group = " + std::to_string(c.groups) + ", " +
          c.attributes + "> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n";
      const std::vector<NamedValue> inputs = {{"x", codes({1, c.in, c.height, c.width}, x_signed)}};
      auto reference = session(text, true);
      ASSERT_TRUE(reference);
      auto want = reference->run(inputs);
      ASSERT_TRUE(want) << want.error().message;
      for (const int threads : {1, 2, 3, 4}) {
        set_thread_count(threads);
        auto fast = session(text, false);
        ASSERT_TRUE(fast);
        for (int round = 0; round < 2; ++round) {
          auto got = fast->run(inputs);
          ASSERT_TRUE(got) << got.error().message;
          const Tensor &a = (*got)[0].tensor(), &b = (*want)[0].tensor();
          ASSERT_EQ(Dims(a.dims()), Dims(b.dims()));
          for (int64_t i = 0; i < a.size(); ++i)
            ASSERT_LE(std::abs(a.get_double(i) - b.get_double(i)), 1)
                << c.attributes << " on " << threads << " at " << i;
        }
      }
    }
}

TEST_F(Quantised, ConvolutionsOfExtremes) {
  // The ends of both ranges, with zero points at both ends, where sums of 16 and of 32 bits are as
  // large as they get: 114 inputs of 3x3 are the most that Winograd's results leave room for with
  // weights of -128, 600 with small ones take several parts, 100 x 100 pixels several bands.
  struct Case {
    int64_t in, out, groups, size, kernel;
    int kind;  ///< of weights: all least, all greatest, either, small
  };
  const Case cases[] = {{16, 16, 1, 9, 3, 0},  {114, 17, 1, 8, 3, 0}, {114, 16, 1, 9, 3, 1},
                        {115, 16, 1, 8, 3, 0}, {40, 16, 1, 12, 3, 2}, {600, 20, 1, 9, 3, 3},
                        {40, 33, 1, 7, 1, 0},  {41, 32, 1, 7, 1, 1},  {64, 20, 1, 9, 1, 2},
                        {48, 48, 48, 7, 3, 0}, {40, 40, 40, 9, 3, 2}, {96, 16, 1, 100, 3, 3}};
  for (const Case& c : cases)
    for (const bool x_signed : {false, true})
      for (const int zero : {0, 255}) {
        const std::string t = x_signed ? "int8" : "uint8";
        const int64_t depth = c.in / c.groups * c.kernel * c.kernel, pad = c.kernel / 2;
        const double most = 255.0 * 128 * static_cast<double>(depth) / (c.kind == 3 ? 16 : 1);
        const double step = most / (c.kind >= 2 ? 1600 : 100);
        const std::string text =
            "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + t + "[1," +
            list({c.in, c.size, c.size}) + "] x) => (int8[n,m,h,k] y) <float sx = {1}, " + t +
            " zx = {" + std::to_string(x_signed ? zero - 128 : zero) + "}, " +
            given("int8[" + list({c.out, c.in / c.groups, c.kernel, c.kernel}) + "] w",
                  c.out * depth,
                  [&](int64_t) -> int64_t {
                    if (c.kind == 3) return integer(-8, 8);
                    return c.kind == 0 || (c.kind == 2 && integer(0, 1) == 0) ? -128 : 127;
                  }) +
            ", float sw = {1}, int8 zw = {0}, float sy = {" + std::to_string(step) +
            "}, int8 zy = {0}, " + constant("int32", "b", {c.out}, -5000, 5000) +
            "> {\n y = QLinearConv <kernel_shape = [" + list({c.kernel, c.kernel}) + "], pads = [" +
            list({pad, pad, pad, pad}) + "], group = " + std::to_string(c.groups) +
            "> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n";
        for (const int values : {0, 255, -1}) {
          Tensor x = codes({1, c.in, c.size, c.size}, x_signed);
          for (int64_t i = 0; i < x.size(); ++i) {
            const int64_t code = values >= 0 ? values : integer(0, 1) * 255;
            x.set_double(i, static_cast<double>(x_signed ? code - 128 : code));
          }
          agree(text, x, 1, "tombolo_qlinear_conv");
        }
      }
}

// Sums times scales that no 32 bits hold end at the limits, those of scales below 1 nearby.
TEST_F(Quantised, ConvolutionsBeyond32Bits) {
  for (const int64_t out : {16, 40})
    for (const double scale : {0.75, 1.0, 1e6, 1e30}) {
      const std::string text =
          "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (uint8[1,24,5,6] x) => (int8[n,m,h,k] "
          "y) <float sx = {" +
          std::to_string(scale) + "}, uint8 zx = {128}, " +
          constant("int8", "w", {out, 24, 1, 1}, -128, 127) +
          ", float sw = {1}, int8 zw = {0}, float sy = {1}, int8 zy = {-7}, " +
          constant("int32", "b", {out}, -5000, 5000) +
          "> {\n y = QLinearConv <kernel_shape = [1, 1]> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n";
      agree(text, codes({1, 24, 5, 6}, false), 1, "tombolo_qlinear_conv");
    }
}

// Windows whose rows of results would leave tiles half empty, or full of what lies between them:
// strides and dilations that differ, kernels that are no square, padding on one side.
TEST_F(Quantised, ConvolutionsOfShiftedColumns) {
  struct Case {
    int64_t batch, in, out, groups;
    std::vector<int64_t> size, kernel, strides, dilations, pads;
  };
  const Case cases[] = {{1, 64, 96, 1, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
                        {2, 64, 96, 1, {14, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
                        {2, 96, 128, 1, {13, 15}, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
                        {1, 32, 160, 1, {11, 9}, {3, 2}, {3, 1}, {1, 2}, {2, 0, 0, 1}},
                        {1, 48, 160, 1, {9, 10}, {2, 3}, {1, 2}, {3, 1}, {0, 3, 1, 0}},
                        {1, 40, 200, 1, {8, 5}, {5, 3}, {2, 1}, {1, 1}, {0, 1, 2, 1}},
                        {1, 64, 256, 2, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
                        {1, 33, 300, 1, {5, 7}, {3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}},
                        {1, 64, 200, 1, {5, 4}, {3, 3}, {2, 5}, {1, 1}, {3, 4, 2, 4}}};
  for (const Case& c : cases)
    for (const bool x_signed : {false, true})
      for (const int zeros : {0, 1}) {
        const std::string t = x_signed ? "int8" : "uint8";
        const int64_t width = c.in / c.groups;
        const std::vector<int64_t> x = {c.batch, c.in, c.size[0], c.size[1]};
        const std::string text =
            "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + t + "[" + list(x) +
            "] x) => (uint8[n,m,h,k] y) <float sx = {0.02}, " +
            constant(t, "zx", {}, x_signed ? -90 : 0, 120) + ", " +
            constant("int8", "w", {c.out, width, c.kernel[0], c.kernel[1]}, -128, 127) + ", " +
            scales("sw", c.out) + ", " + zero_points(true, zeros, c.out) + ", float sy = {" +
            std::to_string(0.005 * static_cast<double>(width)) + "}, uint8 zy = {101}, " +
            constant("int32", "b", {c.out}, -5000, 5000) +
            "> {\n y = QLinearConv <kernel_shape = [" + list(c.kernel) + "], strides = [" +
            list(c.strides) + "], dilations = [" + list(c.dilations) + "], pads = [" +
            list(c.pads) + "], group = " + std::to_string(c.groups) +
            "> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n";
        agree(text, codes(x, x_signed), 1, "tombolo_qlinear_conv");
      }
}

// Sums that become bytes while the next rows are multiplied, with and without what is added:
// groups of k from one to more than such lines take, columns that fill no panel, rows left over.
TEST_F(Quantised, ResidualsOfEachSize) {
  struct Case {
    int64_t in, out, height, width;
  };
  const Case cases[] = {{4, 32, 7, 7},    {12, 40, 5, 5},  {16, 32, 6, 12}, {24, 33, 9, 8},
                        {64, 100, 13, 7}, {100, 32, 6, 6}, {256, 70, 5, 9}, {600, 48, 6, 7}};
  for (const Case& c : cases)
    for (const bool is_signed : {false, true})
      for (const bool added : {false, true}) {
        const std::string t = is_signed ? "int8" : "uint8", zero = is_signed ? "-9" : "110";
        const std::string step = std::to_string(0.02 * std::sqrt(static_cast<double>(c.in)));
        const std::string text =
            "<ir_version: 10, opset_import: [\"\" : 17]>\nmain (float[2," +
            list({c.in, c.height, c.width}) + "] x) => (" + t +
            "[n,m,h,k] y) <float s = {0.025}, " + t + " z = {" + zero + "}, float cs = {" + step +
            "}, float ys = {" + step + "}, " +
            constant("int8", "wq", {c.out, c.in, 1, 1}, -100, 100) + ", " +
            constant("int8", "vq", {c.out, c.in, 1, 1}, -100, 100) + ", float ws = {0.01}, " +
            "int8 wz = {0}> {\n q = QuantizeLinear (x, s, z)\n d = DequantizeLinear (q, s, z)\n" +
            " w = DequantizeLinear (wq, ws, wz)\n c = Conv (d, w)\n" +
            " cq = QuantizeLinear (c, cs, z)\n cd = DequantizeLinear (cq, cs, z)\n" +
            (added ? " v = DequantizeLinear (vq, ws, wz)\n e = Conv (d, v)\n eq = QuantizeLinear "
                     "(e, ys, z)\n ed = DequantizeLinear (eq, ys, z)\n f = Add (cd, ed)\n"
                   : " f = Relu (cd)\n") +
            " y = QuantizeLinear (f, ys, z)\n}\n";
        agree(text, floats({2, c.in, c.height, c.width}), 1, "tombolo_qlinear_conv");
      }
}

TEST_F(Quantised, SandwichesOfANetwork) {
  // Convolutions with Relu and Clip, a residual, a depthwise one, pools, Concat
  // and a last layer.
  for (const bool is_signed : {false, true}) {
    const std::string t = is_signed ? "int8" : "uint8", zero = is_signed ? "-9" : "3";
    std::string nodes, constants;
    int count = 0;
    const auto scale = [&](const std::string& name, const char* step) {
      constants +=
          ", float " + name + "s = {" + step + "}, " + t + " " + name + "z = {" + zero + "}";
    };
    const auto quantise = [&](const std::string& name, const char* step) {
      scale(name, step);
      nodes += " " + name + "q = QuantizeLinear (" + name + ", " + name + "s, " + name + "z)\n " +
               name + "d = DequantizeLinear (" + name + "q, " + name + "s, " + name + "z)\n";
    };
    const auto weights = [&](const std::vector<int64_t>& dims) {
      const std::string w = "w" + std::to_string(count++);
      constants += ", " + constant("int8", w + "q", dims, -100, 100) + ", " +
                   scales(w + "s", dims[0]) + ", " + constant("int8", w + "z", {dims[0]}, 0, 0);
      nodes += " " + w + " = DequantizeLinear <axis = 0> (" + w + "q, " + w + "s, " + w + "z)\n";
      return w;
    };
    quantise("x", "0.025");
    const std::string w0 = weights({20, 3, 3, 3}), w1 = weights({20, 20, 1, 1}),
                      w2 = weights({20, 1, 3, 3}), w3 = weights({7, 40});
    constants += ", float[20] b = {" + std::string("0.25");
    for (int i = 1; i < 20; ++i) constants += ",-0.5";
    constants += "}, float six = {6}, float none = {0}";
    nodes += " c = Conv <pads = [1,1,1,1], strides = [2,2]> (xd, " + w0 + ", b)\n a = Relu (c)\n";
    quantise("a", "0.05");
    nodes += " e = Conv (ad, " + w1 + ")\n";
    quantise("e", "0.3");
    nodes += " f0 = Add (ed, ad)\n f = Relu (f0)\n";
    quantise("f", "0.25");
    nodes +=
        " g0 = Conv <group = 20, pads = [1,1,1,1]> (fd, " + w2 + ")\n g = Clip (g0, none, six)\n";
    quantise("g", "0.04");
    nodes += " h = MaxPool <kernel_shape = [3,3], pads = [1,1,1,1]> (gd)\n";
    constants += ", float hs = {0.04}, " + t + " hz = {" + zero + "}";
    nodes +=
        " hq = QuantizeLinear (h, hs, hz)\n hd = DequantizeLinear (hq, "
        "hs, hz)\n";
    nodes += " j = Concat <axis = 1> (hd, fd)\n";
    quantise("j", "0.2");
    nodes += " k = GlobalAveragePool (jd)\n";
    quantise("k", "0.1");
    nodes += " l = Flatten (kd)\n";
    constants += ", float ls = {0.1}, " + t + " lz = {" + zero + "}";
    nodes +=
        " lq = QuantizeLinear (l, ls, lz)\n ld = DequantizeLinear (lq, "
        "ls, lz)\n";
    nodes += " y0 = Gemm <transB = 1> (ld, " + w3 + ")\n";
    constants += ", float ys = {5}, " + t + " yz = {" + zero + "}";
    nodes += " y = QuantizeLinear (y0, ys, yz)\n";
    const std::string text =
        "<ir_version: 10, opset_import: [\"\" : 17]>\nmain (float[2,3,17,15] x)"
        " => (" +
        t + "[n,m] y) <" + constants.substr(2) + "> {\n" + nodes + "}\n";
    agree(text, floats({2, 3, 17, 15}), 2, "tombolo_qlinear_conv");
  }
}

TEST_F(Quantised, Softmax) {
  for (const bool is_signed : {false, true})
    for (const int opset : {11, 13})
      for (const int64_t axis : {3, 1}) {
        if (opset == 13 && axis == 1) continue;  // not along memory
        const std::string t = is_signed ? "int8" : "uint8";
        const std::string text =
            "<ir_version: 10, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\nmain (" + t +
            "[2,3,5,70] x) => (" + t + "[2,3,5,70] y) <float xs = {0.05}, " + t +
            " xz = {30}, float ys = {0.00390625}, " + t + " yz = {" + (is_signed ? "-128" : "0") +
            "}> {\n y = com.microsoft.QLinearSoftmax <opset = " + std::to_string(opset) +
            ", axis = " + std::to_string(axis) + "> (x, xs, xz, ys, yz)\n}\n";
        agree(text, codes({2, 3, 5, 70}, is_signed), 1, "qlinear_softmax");
      }
}

TEST_F(Quantised, WhatIsNoNumberLeavesTheRangeAlone) {
  Tensor x = floats({70});
  for (const int64_t i : {0, 20, 69}) x.data<float>()[i] = std::numeric_limits<float>::quiet_NaN();
  agree(
      "<ir_version: 10, opset_import: [\"\" : 17]>\nmain (float[70] x) => (uint8[70] y) {\n"
      " y, s, z = DynamicQuantizeLinear (x)\n}\n",
      x, 0, "dynamic_quantize_linear");
}

TEST_F(Quantised, HalvesAreComputedInFloats) {
  // Weights large enough to stay as they are; results of 16 bits.
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 17]>\nmain (float16[1,48,5,5] x) "
      "=> (float16[1,40] y)"
      " <" +
      constant("float16", "w", {48, 48, 3, 3}, -4, 4) + ", " +
      constant("float16", "b", {48}, -9, 9) + ", " + constant("float16", "v", {1200, 40}, -3, 3) +
      ", float16 c = {0.0009765625}, int64[2] t = {1, 1200}> {\n"
      " h = Conv <pads = [1,1,1,1]> (x, w, b)\n r = Relu (h)\n s = Mul (r, c)\n"
      " p = Transpose <perm = [0,2,3,1]> (s)\n f = Reshape (p, t)\n u = MatMul "
      "(f, v)\n"
      " y = Mul (u, c)\n}\n";
  auto x = Tensor::allocate(DType::kFloat16, std::vector<int64_t>{1, 48, 5, 5});
  ASSERT_TRUE(x);
  for (int64_t i = 0; i < x->size(); ++i)
    x->set_double(i, static_cast<double>(integer(-2000, 2000)) / 1024);
  agree_roughly(text, *x, 4e-3, "fused_matmul_f32");
}

}  // namespace
}  // namespace tombolo
