#pragma once

// Convolution of bytes with channels last: a pixel's channels lie together, so a window is a few
// stretches of bytes and neighbouring pixels lie a constant distance apart, which is what products
// of rows want. One input channel a group (depthwise) has a loop of its own, channel by channel.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/quant/qgemm.h"

namespace tombolo {

struct QConvBand;

struct QConvPlan {
  /// Where the window has no depth, the input's slices are images of a batch.
  ConvGeometry shape;
  bool x_signed = false, depthwise = false;
  bool winograd = false;  ///< the image is transformed, see qconv_winograd.cpp
  bool copy = false;      ///< the image is copied, with its padding
  /// The copy has the columns that each position of the kernel sees, row by row, so that what one
  /// position sees of all results lies in one piece.
  bool shifted = false;
  bool flip = false;    ///< bytes of x get 128 more: the products want them unsigned
  bool zeros = false;   ///< weights have zero points besides the middle
  int element = 1;      ///< bytes of an element of the copy
  int64_t columns = 0;  ///< pixels of a row of the image that is read
  int64_t rows = 0;     ///< of them
  int64_t slices = 1;   ///< of rows, one behind the other
  int64_t run = 0;      ///< elements of a stretch
  int64_t batches = 1;  ///< images that one product takes
  QProduct product;     ///< of one group
  size_t weight_bytes = 0, image_bytes = 0;
  /// Depthwise: pixels beside one another that are taken for channels of one, of few channels.
  int64_t fold = 1;
  size_t row_slack = 0;          ///< depthwise: bytes behind the rows that are copied
  std::vector<QConvBand> bands;  ///< see q_plan_bands(); else empty
  size_t band_bytes = 0;         ///< scratch of all of them
  int64_t pixels() const {       ///< that one product reads from
    return copy ? slices * rows * columns : batches * shape.in_plane();
  }
  /// Sums of what each output pixel sees, which the weights' zero points multiply, and of each
  /// pixel, behind the image.
  size_t sum_bytes() const {
    return zeros && !depthwise ? static_cast<size_t>(batches * shape.out_plane() + pixels()) * 4
                               : 0;
  }
  size_t scratch_bytes() const {
    return std::max((image_bytes + 63) / 64 * 64 + sum_bytes(), band_bytes);
  }
  int64_t outputs() const { return shape.groups * shape.out_channels; }
  int64_t channels() const { return shape.groups * shape.in_channels; }
  /// Depthwise: of the weights, and of what is added to sums and multiplies them.
  int64_t places() const { return outputs() * fold; }
};

/// Rows of the result that are a convolution of their own: where the rows that they see begin, and
/// they, and their scratch, in pixels and bytes.
struct QConvBand {
  QConvPlan plan;
  int64_t in = 0, out = 0;
  size_t scratch = 0;
};
/// Cuts a small image that is copied into bands, one for each of so many threads: they would wait
/// for one another between copy and product for as long as these take, and fetch what they need
/// from the other's cache.
void q_plan_bands(QConvPlan& plan, int64_t threads);

/// `rest`: something is added to the result, which the depthwise kernel does not do. `w` as in
/// pack_qconv_last, or null where it is not known: large weights keep Winograd's transform out.
QConvPlan plan_qconv_last(const ConvGeometry& shape, bool x_signed, bool rest,
                          const QTiles& tiles = q_tiles(), const uint8_t* w = nullptr,
                          bool flip = false, bool zeros = false);
/// w [M, C / group, kh, kw], around 0 (around 128 with `flip`), and `zeros`: how far each output's
/// zero point is from there, or null. sums: of each output, less the zero points.
void pack_qconv_last(const QConvPlan& plan, const uint8_t* w, bool flip, const int32_t* zeros,
                     std::byte* packed, int32_t* sums);
/// `finish`'s columns are the outputs of all groups; its `zero` is that of the weights, where they
/// have some. `zero`: the code of x that padding has.
void run_qconv_last(const QConvPlan& plan, const uint8_t* x, uint8_t zero, const std::byte* packed,
                    const QFinish& finish, std::byte* scratch);
/// What x's zero point is to the products: 128 more where bytes are flipped.
int32_t product_zero(const QConvPlan& plan, int32_t zero);

// What convolution and its transpose share.

/// A copy of an image and the padding around it, as bytes or 16-bit numbers.
struct QImage {
  int64_t in[3];      ///< slices, rows and columns that are given
  int64_t before[3];  ///< of padding
  int64_t size[3];    ///< of the copy
  int64_t channels;
  int element;  ///< bytes of a number of the copy
  bool flip;    ///< bytes get 128 more
};
inline constexpr int64_t kQImageSlack = 4096;  ///< bytes behind it that whole tiles may read
/// `zero`: what padding has.
void q_copy_image(const QImage& image, const uint8_t* x, uint8_t zero, std::byte* to);

/// Whether rows of `width` results are better multiplied one by one than with all that lies
/// between them, where one follows the other after `period` pixels: padding of large dilations is
/// longer than the rows.
bool q_rows_apart(const QProduct& product, int64_t height, int64_t width, int64_t period);
/// Appends `count` rows of A that begin at `offset`: of every `period` the first `useful` are
/// results, from `to` on, each `to_row` after the one before.
void q_add_lines(QProduct& product, int64_t offset, int64_t count, int64_t period, int64_t useful,
                 int64_t to, int64_t to_row);

/// sums[i]: of the `channels` numbers of pixel i, which are `step` apart.
void q_sum_pixels(const std::byte* x, int64_t pixels, int64_t step, int64_t channels, int element,
                  bool is_signed, int32_t* sums);
/// sums[i] of what window i sees: `taps` of sums of pixels, windows `step` pixels apart.
void q_sum_taps(const int32_t* of_pixels, std::span<const int64_t> taps, int64_t width,
                int64_t step, int32_t* sums);

/// So few threads each make what they read, rather than fetch what another made from its core.
inline constexpr int64_t kOwnThreads = 4;

/// F(4x4, 3x3) of bytes: whether it takes a convolution and is faster, and its parts. Weights are
/// [M][taps][C] when they are packed.
bool q_winograd_takes(const ConvGeometry& shape, const uint8_t* w, bool flip);
size_t q_winograd_weight_bytes(const ConvGeometry& shape);
size_t q_winograd_image_bytes(const ConvGeometry& shape);
void q_winograd_pack(const ConvGeometry& shape, const int8_t* w, std::byte* packed);
void q_winograd_run(const QConvPlan& plan, const uint8_t* x, uint8_t zero, const std::byte* packed,
                    const QFinish& finish, std::byte* image);

/// Depthwise: a block of channels at some pixels of a row; see qconv_depthwise.cpp
/// and qconv_depthwise_vnni.cpp.
struct QDepthwise {
  const uint8_t* const* taps;  ///< bytes of each tap at the first pixel
  int64_t tap_count;
  int64_t step;    ///< bytes from pixel to pixel
  int64_t pixels;  ///< neighbours in one row
  bool x_signed;
  const std::byte* weights;   ///< from q_depthwise_pack, of all channels
  int64_t channel, channels;  ///< the block's first channel, and all of them
  // What is added to sums, and their scale, of all channels where q_depthwise_place has them.
  const int32_t* add;
  const float* scale;
  int32_t zero, least, greatest;  ///< of the result
  std::byte* out;                 ///< the block's first channel at the first pixel
  int64_t ldo;
};
/// `wide`: weights have nine bits.
int64_t q_depthwise_place(int64_t channel, int64_t channels, bool wide);
int64_t q_depthwise_block(bool wide);
size_t q_depthwise_bytes(int64_t channels, int64_t taps, bool wide);
void q_depthwise_pack(const int16_t* w, int64_t channels, int64_t taps, bool wide,
                      std::byte* packed);
void q_depthwise(const QDepthwise& job, bool wide);
/// The same with VNNI, which wants x unsigned (QConvPlan::flip).
int64_t q_depthwise_vnni_place(int64_t channel, int64_t channels);
int64_t q_depthwise_vnni_block();
size_t q_depthwise_vnni_bytes(int64_t channels, int64_t taps);
void q_depthwise_vnni_pack(const int8_t* w, int64_t channels, int64_t taps, std::byte* packed);
void q_depthwise_vnni(const QDepthwise& job);

}  // namespace tombolo
