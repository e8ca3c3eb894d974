#pragma once

// Products of floats that are rounded to bf16 (to nearest even), with sums of floats: what the
// option fast_math allows where the processor multiplies bf16 (has_bf16_dot()), by AMX or by dot
// products. B lies in panels of 32 columns, in pairs of k: [panel][k / 2][column][2]. Denormal
// numbers count as zero. A sum is taken in one order, whatever the number of threads.
//
// Where has_f16_products(), elements are float16 in the same places: three more digits. What
// float16 lacks is range, so each side is scaled by the power of two that brings its largest number
// to kMostF16, and sums of kF16Summed products, which do not overflow then, go to floats.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/quant/qgemm.h"

namespace tombolo {

inline constexpr int64_t kBf16Panel = 32;

inline constexpr float kMostF16 = 8;
inline constexpr int64_t kF16Summed = 128;
/// The largest magnitude of n floats, leaving out infinities and NaN.
float largest_finite(const float* x, int64_t n);
/// The same of m rows of k, ldx apart. Threaded.
float largest_of(const float* x, int64_t ldx, int64_t m, int64_t k);
/// The power of two that brings `largest` to kMostF16 or up to half of it. 1 for zero.
float f16_scale(float largest);
/// Packed sides end with a line that holds their scale.
inline constexpr int64_t kScaleBytes = 64;
void put_scale(float scale, std::byte* line);
float read_scale(const std::byte* line);
/// What brings sums back, of sides scaled by so much.
inline float scale_of_sums(float a, float b) { return 1 / a / b; }
/// As the functions of bf16 below: x times a scale as float16.
void round_f16(const float* x, int64_t n, float scale, std::byte* out);
void f16_pair_rows(const float* rows, int64_t k, float scale, std::byte* out);
/// Pixels in blocks of 16 channels, a plane apart: `channels` of each and zeros up to `width`.
void f16_blocks(const float* x, int64_t plane, int64_t x_step, int64_t pixels, int64_t channels,
                int64_t width, float scale, std::byte* out, int64_t step);
/// The largest finite magnitude of them.
float largest_of_pixels(const float* x, int64_t x_step, int64_t pixels, int64_t channels,
                        int64_t plane);

/// n floats as bf16.
void round_bf16(const float* x, int64_t n, std::byte* out);
/// k rows of a panel, floats [k][32], as pairs; an odd k gets a row of zeros.
void bf16_pair_rows(const float* rows, int64_t k, std::byte* out);
/// `pixels` times 16 floats, x_step floats apart: the first `channels` of each, rounded, and zeros
/// up to `width`, at most 16, to places `step` bytes apart.
void bf16_pixels(const float* x, int64_t x_step, int64_t pixels, int64_t channels, int64_t width,
                 std::byte* out, int64_t step);
/// The same, and to `rest` what rounding took off, rounded; nothing of infinities and NaN.
void bf16_pixels_and_rest(const float* x, int64_t x_step, int64_t pixels, int64_t channels,
                          int64_t width, std::byte* out, std::byte* rest, int64_t step);

/// sums[rows][32], finished but for `post`, to rows of c.
void bf16_store(const GemmEpilogue& epilogue, const float* sums, int64_t row, int64_t rows,
                int64_t column, int64_t columns, float* c, int64_t ldc);
/// sums[rows][32], 16 columns of it, to y[rows][16]: plus bias and residual, between limits.
void bf16_store_block(const float* sums, int64_t rows, const float* bias, const float* residual,
                      const Activation& activation, float* y);

/// Results of a convolution over blocked channels: `apply` of a Bf16Finish for one image.
struct Bf16Blocks {
  float* y;
  int64_t plane;  ///< floats of a block of channels
  const ConvEpilogue& e;
  const float* residual;
  static void finish(const void* argument, const float* sums, int64_t row, int64_t rows,
                     int64_t column, int64_t columns);
};

/// What becomes of a block of sums[rows][32]: its place is (row, column).
struct Bf16Finish {
  void (*apply)(const void* argument, const float* sums, int64_t row, int64_t rows, int64_t column,
                int64_t columns);
  const void* argument;
  /// What `apply` does with tiled activations: tiles may write what becomes of their sums.
  const Bf16Blocks* blocks = nullptr;
};
/// What brings the sums of each tile back, or one number for all of them: 1 unless
/// has_f16_products().
struct Bf16Scales {
  const float* tiles = nullptr;
  float all = 1;
  int64_t summed = kF16Summed;  ///< products that float16 sums up
  float of(size_t tile) const { return tiles != nullptr ? tiles[tile] : all; }
};
/// C = A B times scales. `run` elements of a stretch are bf16_stretch() of something; A may be read
/// for whole tiles of 16 rows. Threaded.
void bf16_product(const QProduct& product, const std::byte* a, const std::byte* b,
                  const Bf16Scales& scales, const Bf16Finish& finish);

/// Where the rows of A come from: floats that are rounded.
struct Bf16Source {
  /// Row `row` and those after it, `rows` of them, to places `step` bytes apart, with zeros up to
  /// the end of a stretch. What float16 is multiplied by is one number for all of them, the result.
  float (*round)(const void* argument, int64_t row, int64_t rows, std::byte* to, int64_t step);
  const void* argument;
};
/// C = A B, of one stretch, with A rounded by and by: each tile of rows has a scale of its own.
/// `scale` is that of B. Threaded.
void bf16_rows_product(const QProduct& product, const Bf16Source& source, const std::byte* b,
                       float scale, const Bf16Finish& finish);
/// The same by the calling thread alone, which needs what lies at `after` next. Float16 sums up
/// `summed` products.
void bf16_rows_product_alone(const QProduct& product, const Bf16Source& source, const std::byte* b,
                             const std::byte* after, float scale, int64_t summed,
                             const Bf16Finish& finish);
/// The least number of elements, a multiple of `unit`, from `k` on that is cut into whole chunks.
int64_t bf16_stretch(int64_t k, int64_t unit = 2);
/// m rows of k numbers by n columns.
struct Bf16Work {
  int64_t m, k, n;
  int64_t rounded;        ///< numbers that are rounded in each run
  int64_t rounded_k = k;  ///< with what fills up rows
};
/// Products in a cycle, as measured on a processor that multiplies 32 floats in one, or 64 numbers
/// of bf16 or float16.
inline constexpr double kFloatsACycle = 28.8, kRoundedACycle = 57.6;
/// Whether they take less time by dot products of rounded numbers than as floats: panels are wider
/// than vectors of floats, and numbers have to be rounded and sums to be stored.
bool bf16_pays(const Bf16Work& work);
/// For tests: whether that is always so.
void let_bf16_pay(bool always);
/// m rows of k numbers by n columns, each row beside a line that keeps them apart in the caches.
QProduct bf16_plan_rows(int64_t m, int64_t n, int64_t k);
/// Whether products of m rows go by tiles of AMX, and the rows of a tile.
bool bf16_use_amx(int64_t m);
int64_t bf16_tile_rows(int64_t m);

/// Dot products without tiles: `rows` rows (at most kBf16DotRows) times one panel.
inline constexpr int kBf16DotRows = 12;
struct Bf16Dot {
  const std::byte* a;
  int64_t lda;             ///< bytes
  const int64_t* offsets;  ///< of each stretch in `a`, bytes
  int64_t stretches, pairs;
  const std::byte* b;
  float* sums;                  ///< [rows][32]
  float scale = 1;              ///< of sums of float16
  int64_t summed = kF16Summed;  ///< products that float16 sums up
  /// What is needed next: a line is asked for with each pair, `next_step` bytes on. Null: B further
  /// on.
  const std::byte* next = nullptr;
  int64_t next_step = 0;
};
void bf16_dot(const Bf16Dot& dot, int rows);
/// Of which become rows from `row` on, in so many columns from `column` on, 16 or 32.
void bf16_dot_blocks(const Bf16Dot& dot, int rows, const Bf16Blocks& blocks, int64_t row,
                     int64_t column, int64_t columns);
void f16_dot(const Bf16Dot& dot, int rows);

/// C[m, n] = A[m, k] B + epilogue with B packed: bf16_stretch(k) rows, the last ones zeros, and a
/// line behind them with the scale of B. Threaded.
int64_t bf16_b_bytes(int64_t k, int64_t n);
/// Rows [from, from + k) (`from` even, k too unless they are the last) of panel `panel` of a matrix
/// of `depth` rows, from floats [k][32].
void bf16_pack(const float* rows, int64_t from, int64_t k, int64_t depth, int64_t panel,
               float scale, std::byte* packed);
/// Before or after: the scale that bf16_pack was given.
void bf16_pack_scale(float scale, int64_t k, int64_t n, std::byte* packed);
/// alpha * B at once, with B[i, j] at b[i * row + j * column]. Threaded.
void bf16_pack_b(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
                 std::byte* packed);
void bf16_gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const std::byte* b,
               float* c, int64_t ldc, const GemmEpilogue& epilogue);

/// Numbers as sums of bf16 (gemm_parts.h): images of models in halves as two, weights in float16,
/// or scaled, as two, in bfloat16 as one. Each stretch of the image is multiplied once for each
/// product of two such parts that counts.
enum class Bf16Parts : uint8_t { kRounded, kBfloat16, kFloat16 };

/// Pixels of blocked channels (block.h) as rows of A: `channels` of each and zeros up to `width`,
/// pixels of a line `step` floats apart, lines `line` floats.
struct Bf16Pixels {
  const float* x;
  int64_t plane, channels, width;
  int64_t line_pixels, step, line;
  static float round(const void* argument, int64_t row, int64_t rows, std::byte* to,
                     int64_t row_bytes);
};

/// Convolution over blocked channels (block.h): the image becomes bf16 with a pixel's channels
/// together, padded, and split by stride so that what neighbouring results read lies side by side.
struct Bf16Conv {
  struct Phase {
    int64_t row, column;  ///< of the first pixel in the padded image, less the padding
  };
  ConvGeometry shape;
  Bf16Parts parts = Bf16Parts::kRounded;
  int64_t channels = 0;           ///< elements of a pixel
  int64_t pixel = 0;              ///< bytes from one to the next
  int64_t rows = 0, columns = 0;  ///< of a phase
  int64_t shared = 0;  ///< columns of a row that are the first ones of the next row, padding
  std::vector<Phase> phases;
  bool pointwise = false;  ///< pixels are rounded where they are multiplied, there is no image
  bool plain = false;      ///< the input is not blocked: few channels
  QProduct product;
  size_t weight_bytes = 0, image_bytes = 0;

  /// Bytes of the image, or of the first part of it.
  int64_t part_bytes() const {
    return (static_cast<int64_t>(phases.size()) * rows * columns + shared) * pixel;
  }
  /// Of the weights.
  int64_t weight_parts() const { return parts == Bf16Parts::kFloat16 ? 2 : 1; }
};
bool bf16_conv_fits(const ConvGeometry& shape, bool plain);
/// Whether it takes less time by dot products than as floats.
bool bf16_conv_pays(const ConvGeometry& shape, bool plain);
Bf16Conv plan_bf16_conv(const ConvGeometry& shape, Bf16Parts parts, bool plain);
void pack_bf16_conv(const Bf16Conv& plan, const float* w, std::byte* packed);
/// The bias fills up the last block of channels.
void run_bf16_conv(const Bf16Conv& plan, const float* x, const std::byte* packed, float* y,
                   const ConvEpilogue& epilogue, std::byte* image);

}  // namespace tombolo
