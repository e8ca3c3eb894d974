// Single operators on images at every instruction set of this machine: fast kernels against the
// reference's.

#include "operators.h"

namespace tombolo {
namespace {

class ImageOperators : public Operators {};

TEST_P(ImageOperators, DeformConv) {
  struct Case {
    std::vector<int64_t> x, w, out;
    int groups, shares;
    const char* attributes;
  };
  const Case cases[] = {
      {{2, 6, 9, 8}, {5, 6, 3, 3}, {9, 8}, 1, 1, "pads = [1, 1, 1, 1]"},
      {{1, 8, 10, 11}, {6, 4, 3, 2}, {4, 5}, 2, 4, "strides = [2, 2], group = 2, offset_group = 4"},
      {{1, 4, 7, 30},
       {20, 4, 1, 3},
       {7, 28},
       1,
       2,
       "dilations = [1, 2], pads = [0, 1, 0, 1], offset_group = 2"},
      // Several blocks of pixels; shares of channels that end inside of groups.
      {{1, 60, 21, 20},
       {36, 20, 3, 3},
       {21, 20},
       3,
       2,
       "pads = [1, 1, 1, 1], group = 3, offset_group = 2"}};
  const auto list = [](std::initializer_list<int64_t> dims) {
    std::string text;
    for (const int64_t d : dims) text += (text.empty() ? "" : ",") + std::to_string(d);
    return "[" + text + "]";
  };
  for (const Case& c : cases) {
    const int64_t taps = c.w[2] * c.w[3] * c.shares, n = c.x[0];
    const std::string ports = "main (float" + list({n, c.x[1], c.x[2], c.x[3]}) + " x, float" +
                              list({c.w[0], c.w[1], c.w[2], c.w[3]}) + " w, float" +
                              list({n, 2 * taps, c.out[0], c.out[1]}) + " o, float" +
                              list({c.w[0]}) + " b, float" + list({n, taps, c.out[0], c.out[1]}) +
                              " m) => (y) ";
    const std::string head = ports + "{ y = DeformConv <" + c.attributes + "> ";
    // Doubles from the same numbers, and back.
    const std::string wide =
        ports +
        "{ p = Cast <to = 11> (x)\n q = Cast <to = 11> (w)\n r = Cast <to = 11> (o)\n"
        "s = Cast <to = 11> (b)\n t = Cast <to = 11> (m)\n v = DeformConv <" +
        c.attributes + "> ";
    const std::string back = "\n y = Cast <to = 1> (v) }";
    const std::vector<NamedValue> inputs = {
        {"x", numbers({n, c.x[1], c.x[2], c.x[3]}, 1)},
        {"w", numbers({c.w[0], c.w[1], c.w[2], c.w[3]}, 0.2f)},
        {"o", numbers({n, 2 * taps, c.out[0], c.out[1]}, 2, true)},
        {"b", numbers({c.w[0]}, 1)},
        {"m", numbers({n, taps, c.out[0], c.out[1]}, 1)}};
    agree(head + "(x, w, o, b, m) }", inputs, 1e-5);
    agree(head + "(x, w, o, , m) }", inputs, 1e-5);
    agree(head + "(x, w, o) }", inputs, 1e-5);
    agree(wide + "(p, q, r, s, t)" + back, inputs, 1e-6);
    agree(wide + "(p, q, r)" + back, inputs, 1e-6);
  }
}

TEST_P(ImageOperators, ConvolutionsWithWeightsOfTheRun) {
  const auto run = [&](const char* op, std::initializer_list<int64_t> x,
                       std::initializer_list<int64_t> w, int64_t outputs,
                       const std::string& attributes) {
    const std::string ranks = x.size() == 3 ? "A,B,C" : x.size() == 4 ? "A,B,C,D" : "A,B,C,D,E";
    const std::string other = x.size() == 3 ? "F,G,H" : x.size() == 4 ? "F,G,H,I" : "F,G,H,I,J";
    const std::vector<NamedValue> inputs = {
        {"x", numbers(x, 1)}, {"w", numbers(w, 0.2f)}, {"b", numbers({outputs}, 1)}};
    for (const char* bias : {"", ", b"})
      agree("main (float[" + ranks + "] x, float[" + other + "] w, float[K] b) => (y) { y = " + op +
                " <" + attributes + "> (x, w" + bias + ") }",
            inputs, 1e-5);
  };
  // Panels of pixels, also as they lie; channels as columns, of one image and of several.
  run("Conv", {1, 20, 13, 14}, {33, 20, 1, 1}, 33, "strides = [1, 1]");
  run("Conv", {2, 300, 9, 11}, {21, 300, 1, 1}, 21, "strides = [2, 1]");
  run("Conv", {1, 70, 7, 7}, {150, 70, 3, 3}, 150, "pads = [1, 1, 1, 1]");
  run("Conv", {2, 300, 3, 5}, {97, 300, 1, 1}, 97, "strides = [1, 1]");
  run("Conv", {5, 40, 3, 3}, {130, 40, 2, 2}, 130, "pads = [0, 0, 1, 1]");
  // Tiles of Winograd's, too few for it and enough; one channel a group.
  run("Conv", {1, 24, 14, 15}, {30, 24, 3, 3}, 30, "pads = [1, 1, 1, 1]");
  run("Conv", {3, 24, 28, 30}, {31, 24, 3, 3}, 31, "pads = [1, 1, 1, 1]");
  run("Conv", {2, 12, 9, 8}, {24, 1, 3, 3}, 24, "group = 12, pads = [1, 1, 1, 1]");
  run("Conv", {2, 30, 61}, {44, 15, 5}, 44, "group = 2, pads = [2, 2]");
  // Windows that meet, that do not, and that leave gaps; of one channel and of several groups.
  for (const char* way : {"strides = [2, 2, 2]", "strides = [1, 1, 1], pads = [1, 0, 1, 0, 1, 1]",
                          "strides = [3, 2, 3], dilations = [1, 2, 1]",
                          "strides = [2, 1, 4], output_padding = [1, 0, 2]"}) {
    run("ConvTranspose", {2, 9, 3, 4, 5}, {9, 5, 2, 2, 2}, 5, way);
    run("ConvTranspose", {1, 4, 4, 3, 19}, {4, 3, 3, 3, 3}, 6, std::string(way) + ", group = 2");
    run("ConvTranspose", {1, 1, 2, 2, 9}, {1, 2, 2, 1, 4}, 2, way);
  }
  run("ConvTranspose", {1, 40, 7, 9}, {40, 30, 2, 2}, 30, "strides = [2, 2]");
  run("ConvTranspose", {1, 200, 2, 3}, {200, 30, 3, 3}, 30, "strides = [2, 2]");
  run("ConvTranspose", {2, 6, 50}, {6, 2, 4}, 6, "strides = [2], group = 3");
}

TEST_P(ImageOperators, AffineGrid) {
  for (const int64_t axes : {2, 3})
    for (const char* aligned : {"0", "1"})
      for (const int64_t width : {1, 7, 16, 37}) {
        const Tensor size =
            axes == 2
                ? Tensor::of<int64_t>(DType::kInt64, {{4}}, std::vector<int64_t>{2, 1, 5, width})
                : Tensor::of<int64_t>(DType::kInt64, {{5}},
                                      std::vector<int64_t>{2, 1, 3, 5, width});
        const std::vector<NamedValue> inputs = {{"t", numbers({2, axes, axes + 1}, 1)},
                                                {"n", size}};
        const std::string node = std::string("AffineGrid <align_corners = ") + aligned + "> ";
        agree("main (float[A,B,C] t, int64[D] n) => (y) { y = " + node + "(t, n) }", inputs, 1e-6);
        agree("main (float[A,B,C] t, int64[D] n) => (y) { p = Cast <to = 11> (t)\n q = " + node +
                  "(p, n)\n y = Cast <to = 1> (q) }",
              inputs, 1e-6);
      }
}

TEST_P(ImageOperators, RoiAlign) {
  // Regions within the picture, half outside, all of it, turned around, and smaller than a cell.
  const float corners[] = {1, 2,  9,  8, -3, -2,  4,   5,   0, 0,    18,  22,  9,   12,
                           4, 20, 25, 1, 30, 6.5, 3.2, 4.1, 3, 4.05, -60, -60, -50, -40};
  const Tensor rois = Tensor::of<float>(DType::kFloat32, {{7, 4}},
                                        std::vector<float>(std::begin(corners), std::end(corners)));
  const Tensor one =
      Tensor::of<int64_t>(DType::kInt64, {{7}}, std::vector<int64_t>{0, 1, 1, 0, 0, 1, 0});
  // Few channels are read as they lie, of many regions on a small picture they are turned.
  for (const bool odd : {false, true})
    for (const char* mode : {"avg", "max"})
      for (const char* ratio : {"0", "1", "2", "3"})
        for (const char* place : {"half_pixel", "output_half_pixel"})
          for (const Tensor& x : {numbers({2, 3, 20, 24}, 1, odd), numbers({2, 70, 9, 10}, 1, odd),
                                  numbers({2, 9, 90, 100}, 1, odd)})
            agree(std::string("main (float[A,B,C,D] x, float[E,F] r, int64[G] b) => (y) { y = "
                              "RoiAlign <output_height = 3, output_width = 5, mode = \"") +
                      mode + "\", sampling_ratio = " + ratio +
                      ", coordinate_transformation_mode = \"" + place + "\"> (x, r, b) }",
                  {{"x", x}, {"r", rois}, {"b", one}}, 1e-5);
}

TEST_P(ImageOperators, CropsOfBoxes) {
  // Parts of a picture, beyond it, turned around, a point, and the whole of it.
  const float corners[] = {0.1f, 0.2f, 0.5f, 0.4f, -0.3f, -0.2f, 0.4f, 1.5f,  0.9f, 0.8f, 0.1f,
                           0.3f, 0.5f, 0.5f, 0.5f, 0.5f,  0,     0,    1,     1,    2,    0,
                           3,    0.5f, 0,    0,    0.3f,  1,     0.f,  -0.0f, 0.1f, 0.02f};
  const Tensor rois = Tensor::of<float>(DType::kFloat32, {{8, 4}},
                                        std::vector<float>(std::begin(corners), std::end(corners)));
  const Tensor one =
      Tensor::of<int32_t>(DType::kInt32, {{8}}, std::vector<int32_t>{0, 1, 1, 0, 0, 1, 0, 1});
  const int32_t sizes[][2] = {{1, 1}, {5, 3}, {2, 16}, {14, 14}, {3, 37}};
  for (const auto& size : sizes)
    for (const char* mode : {"bilinear", "nearest"})
      for (const Tensor& x : {numbers({2, 3, 20, 24}, 1), numbers({2, 70, 1, 7}, 1),
                              numbers({2, 2, 40, 133}, 1), numbers({2, 5, 9, 1}, 1, true)})
        agree(
            std::string("main (float[A,B,C,D] x, float[E,F] r, int32[E] b, int32[G] s) => (y) { "
                        "y = com.microsoft.CropAndResize <extrapolation_value = 0.25, mode = \"") +
                mode + "\"> (x, r, b, s) }",
            {{"x", x},
             {"r", rois},
             {"b", one},
             {"s",
              Tensor::of<int32_t>(DType::kInt32, {{2}}, std::vector<int32_t>{size[0], size[1]})}},
            1e-6);
}

TEST_P(ImageOperators, NearestNeighbours) {
  for (const char* scale : {"0.3", "0.5", "0.52", "0.8", "1.1", "1.37", "1.5", "2", "3", "9.5"})
    for (const int64_t width : {5, 11, 17, 40, 67})
      for (const char* way : {"half_pixel", "asymmetric", "align_corners"})
        for (const char* round : {"round_prefer_floor", "ceil"})
          agree(std::string("main (float[2,3,7,") + std::to_string(width) +
                    "] x) => (y) <float[4] s = {1, 1, 1.3, " + scale +
                    "}> { y = Resize <mode = \"nearest\", coordinate_transformation_mode = \"" +
                    way + "\", nearest_mode = \"" + round + "\"> (x, , s) }",
                {{"x", numbers({2, 3, 7, width}, 1, true)}});
}

// Of a few bytes, whose rows are shuffled, images with channels in front and behind.
TEST_P(ImageOperators, NearestNeighboursOfShortElements) {
  for (const auto& [name, dtype] : {std::pair{"uint8", DType::kUInt8},
                                    {"float16", DType::kFloat16},
                                    {"double", DType::kFloat64}})
    for (const char* scales : {"1, 1, 2, 2", "1, 1, 1.3, 0.5", "1, 1, 3, 0.8", "1, 1, 1, 1.37",
                               "1, 1, 0.6, 0.3", "1, 2, 1.5, 1", "1, 1.4, 0.7, 1"})
      for (const int64_t width : {3, 9, 16, 17, 40, 67})
        for (const Dims& dims : {Dims{2, 3, width, 3}, Dims{2, 3, 7, width}}) {
          Tensor x = *Tensor::allocate(dtype, dims);
          const std::span<std::byte> bytes = x.mutable_bytes();
          for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 37 % 61);
          agree(std::string("main (") + name + "[A,B,C,D] x) => (y) <float[4] s = {" + scales +
                    "}> { y = Resize <mode = \"nearest\"> (x, , s) }",
                {{"x", x}});
        }
}

TEST_P(ImageOperators, MaxRoiPool) {
  const float regions[] = {0,   2, 1,  8, 9, 1,  -3, -2, 5, 4,  1,  0,  0,  22, 18, 0, 12,
                           9,   4, 20, 1, 3, 4,  3,  4,  0, 30, 30, 40, 40, 1,  0,  0, 400,
                           400, 0, 5,  0, 6, 60, 0,  0,  9, 90, 9,  1,  17, 3,  19, 11};
  const Tensor rois = Tensor::of<float>(DType::kFloat32, {{10, 5}},
                                        std::vector<float>(std::begin(regions), std::end(regions)));
  for (const char* shape : {"[1, 1]", "[7, 7]", "[2, 17]", "[3, 5]"})
    for (const char* scale : {"1", "0.37"})
      for (const bool odd : {false, true})
        for (Tensor x : {numbers({2, 3, 20, 24}, 1, odd), numbers({2, 30, 9, 7}, 1, odd),
                         numbers({2, 2, 90, 150}, 1, odd)}) {
          for (float& value : x.span<float>()) value += 0.0f;  // which zero is the greatest is open
          agree(std::string("main (float[A,B,C,D] x, float[E,F] r) => (y) { y = MaxRoiPool "
                            "<pooled_shape = ") +
                    shape + ", spatial_scale = " + scale + "> (x, r) }",
                {{"x", x}, {"r", rois}});
        }
}

INSTANTIATE_TEST_SUITE_P(Isa, ImageOperators,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
