#pragma once

// Float convolution over up to three spatial axes, channels first. A plan says
// which algorithm a shape gets, how weights are packed for it and how much
// scratch memory it needs; all else follows.
//
//   kPixels     few outputs: vectors of neighbouring pixels, windows are read where they lie
//   kDirect     weights (rows) times windows gathered into panels on the way
//   kTransposed few output pixels, many channels: pixels are the rows, packed
//   weights the panels kWinograd   F(4x4, 3x3): 36 products a block of tiles in
//   place of 144 multiplications a tile kDepthwise  one input channel a group
//
// Windows never leave the image: it is first copied with its padding, and split
// by stride into phases, so that what neighbouring outputs read lies side by
// side whatever the stride.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/kernels/conv/activation.h"

namespace tombolo {

struct ConvGeometry {
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1, out_channels = 1;  ///< of one group
  // Depth, height, width; those an operator does not have are 1.
  int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, out[3] = {1, 1, 1};
  /// The operator's `out` where axes of it are joined to one here; else zeros.
  int64_t given_out[3] = {0, 0, 0};

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t depth() const { return in_channels * taps(); }
  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  int64_t extent(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
  bool joined() const { return given_out[2] != 0; }
  /// Of the output, by the operator's axes.
  int64_t out_size(int axis) const { return joined() ? given_out[axis] : out[axis]; }
};

/// Whether no result sees more than one pixel, nor padding.
inline bool is_pointwise(const ConvGeometry& s) {
  bool inside = s.taps() == 1;
  for (const int axis : {1, 2})
    inside = inside && s.pad[axis] == 0 && (s.out[axis] - 1) * s.stride[axis] < s.in[axis];
  return inside;
}

/// Positions of the kernel along an axis.
struct KernelPositions {
  int64_t first, last;  ///< none where they are equal
};
/// Those that output `at` sees the input with, not padding.
inline KernelPositions positions_inside(const ConvGeometry& s, int axis, int64_t at) {
  const int64_t start = at * s.stride[axis] - s.pad[axis], d = s.dilation[axis];
  const int64_t first = start >= 0 ? 0 : (-start + d - 1) / d;
  const int64_t last =
      s.in[axis] <= start ? 0 : std::min(s.kernel[axis], (s.in[axis] - start + d - 1) / d);
  return last < first ? KernelPositions{0, 0} : KernelPositions{first, last};
}

/// One channel with its padding, split into phases: [depth][row phase][column
/// phase][row][column].
struct ConvImage {
  bool copy = false;              ///< false: the input itself will do
  int64_t rows = 0, columns = 0;  ///< of a phase
  int64_t phase = 0;              ///< floats of a phase
  int64_t slice = 0;              ///< floats from one depth to the next
  int64_t plane = 0;              ///< floats of a channel
  std::vector<int64_t> taps;      ///< offset of each kernel position
};

struct ConvPlan {
  enum class Algorithm : uint8_t { kDirect, kTransposed, kWinograd, kDepthwise, kPixels };
  ConvGeometry shape;
  Algorithm algorithm = Algorithm::kDirect;
  ConvImage image;
  /// kPixels, kDirect, kTransposed: of each channel's kernel positions, from where an output
  /// pixel's window begins.
  std::vector<int64_t> offsets;
  size_t weight_floats = 0;                          ///< of the packed weights
  size_t scratch_floats = 0;                         ///< of the run
  int64_t tiles_y = 0, tiles_x = 0, tile_block = 0;  ///< Winograd
  bool own_blocks = false;  ///< Winograd: a thread takes a block of tiles all the way
  bool as_given = false;    ///< weights are not packed before the run
};

struct ConvEpilogue {
  const float* bias = nullptr;      ///< one for each output channel of all groups
  const float* residual = nullptr;  ///< same shape as the output; added before the activation
  Activation activation;
};

ConvPlan plan_convolution(const ConvGeometry& shape, bool allow_winograd = true);
/// For weights that come with the run: none are packed or transformed that are used too little for
/// that. Where `as_given`, run_convolution() takes them instead of packed ones.
ConvPlan plan_convolution_of_run(const ConvGeometry& shape);
const char* name_of(ConvPlan::Algorithm algorithm);
void pack_convolution(const ConvPlan& plan, const float* w, float* packed);
void run_convolution(const ConvPlan& plan, const float* x, const float* packed, float* y,
                     const ConvEpilogue& epilogue, float* scratch);

// The parts.
ConvImage plan_image(const ConvGeometry& shape);
/// Copies channel `x` into its padded, split form; `fill` stands in the
/// padding.
void split_image(const ConvGeometry& shape, const ConvImage& image, const float* x, float fill,
                 float* out);
/// Copies all channels of all groups of one image where the plan wants that;
/// where they then lie.
const float* copy_image(const ConvPlan& plan, const float* x, int64_t channels, float* scratch);
/// Of an output and of what it sums up, floats of w from one to the next.
struct WeightSteps {
  int64_t output, input;
};
/// Of kDirect: whether registers hold all inputs of a vector of outputs. Weights are as given then,
/// [output][depth].
bool sums_are_short(const ConvGeometry& s);
/// Floats of one group's weights.
int64_t direct_weights(const ConvGeometry& s);
/// All groups' weights, each group's as steps say.
void pack_direct(const ConvGeometry& s, const float* w, WeightSteps steps, float* packed);
void run_direct(const ConvPlan& plan, const float* x, const float* packed, float* y,
                const ConvEpilogue& epilogue, float* scratch);
void run_transposed(const ConvPlan& plan, const float* x, const float* packed, float* y,
                    const ConvEpilogue& epilogue, float* scratch);
/// Floats of a row of windows, one for each pixel, with room for a vector
/// beyond.
inline int64_t transposed_row(int64_t pixels) { return (pixels + 15) / 16 * 16 + 16; }
void plan_winograd(ConvPlan& plan);
void pack_winograd(const ConvPlan& plan, const float* w, float* packed);
/// Input pixels of Winograd's tiles along an axis, and as many weights that are made of the
/// kernel's: six make four outputs by a kernel of 3, two by one of 5; eight make two by one of 7.
constexpr int64_t winograd_points(int64_t kernel) { return kernel == 1 ? 1 : kernel == 7 ? 8 : 6; }
/// Kernels (height, width) as Winograd's matrices: [input][tap][column] to u[matrix * matrix_step],
/// [input][column], one input `step` after the other, which may be less than `columns`, a multiple
/// of 8: what is too much is written anew by the next input.
void winograd_weights(const std::array<int64_t, 2>& kernel, const float* kernels, int64_t inputs,
                      int64_t columns, float* u, int64_t step, int64_t matrix_step);
/// How many times the largest weight those of a matrix may be.
double winograd_growth(const std::array<int64_t, 2>& kernel, int64_t matrix);
void run_winograd(const ConvPlan& plan, const float* x, const float* packed, float* y,
                  const ConvEpilogue& epilogue, float* scratch);
void run_depthwise(const ConvPlan& plan, const float* x, const float* packed, float* y,
                   const ConvEpilogue& epilogue, float* scratch);

/// Whether few output channels take less time by vectors of pixels, read where they lie, than by
/// products; of the plan there are the shape and the image.
bool conv_pixels_pays(const ConvPlan& plan);
void pack_conv_pixels(const ConvPlan& plan, const float* w, WeightSteps steps, float* packed);
void run_conv_pixels(const ConvPlan& plan, const float* x, const float* packed, float* y,
                     const ConvEpilogue& epilogue, float* scratch);

/// A run of output pixels whose windows start side by side in the image.
struct PixelRun {
  int64_t to, from, count;
};
/// Output pixels [begin, end) of a channel as runs, at most one a pixel.
int64_t find_runs(const ConvGeometry& shape, const ConvImage& image, int64_t begin, int64_t end,
                  PixelRun* runs);
/// out[i] = sum over taps of w[t] * x[taps[t] + i]. Reads and writes whole
/// vectors.
void correlate_flat(const float* x, const int64_t* taps, const float* w, int64_t count, int64_t n,
                    float* out);
/// out[k - from][pixel] = image[offsets[k] + run] for k in [from, to); rows are
/// `width` apart. May write a vector beyond the end of a row, never more.
void gather_pixels(const float* image, const int64_t* offsets, int64_t from, int64_t to,
                   const PixelRun* runs, int64_t run_count, int64_t width, float* out);
/// y[i] = act(x[i] + bias + residual[i]) for one row of one channel; y may be x.
void finish_row(const float* x, float bias, const float* residual, const Activation& activation,
                int64_t n, float* y);

/// The same for several rows, side by side in y and in the residual.
void finish_rows(const float* x, int64_t x_step, float bias, const float* residual,
                 const Activation& activation, int64_t rows, int64_t n, float* y);

}  // namespace tombolo
