#pragma once

// Convolutions and pools of two spatial axes over blocked channels: [N, C / 16, H, W, 16], the last
// block filled up. What a vector holds is then one pixel's channels: windows of any stride and
// dilation are read as they lie, and a tile of results is pixels by channels in registers. The pass
// block-layout writes these operators (ops/tombolo/block.cpp); lanes beyond the last channel may
// hold anything.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/tombolo/block.h"
#include "runtime/kernels/conv/activation.h"
#include "runtime/kernels/conv/conv.h"

namespace tombolo {

inline constexpr int64_t kBlock = kChannelBlock;
/// Products that are worth a thread, some microseconds: what one thread has made the other would
/// have to fetch.
inline constexpr int64_t kLeastProducts = 500'000;
/// That take as long as a weight on its way from the last cache.
inline constexpr int64_t kProductsOfAWeight = 12;
inline constexpr int64_t blocks_of(int64_t channels) { return (channels + kBlock - 1) / kBlock; }

/// One tile: up to max_rows pixels by one or two vectors of channels, summed over entries (a block
/// of input channels at a kernel position, as a rule) of some neighbouring inputs each.
struct BlockTile {
  const float* a;          ///< of the first pixel
  const int64_t* offsets;  ///< of each entry, from a
  int64_t entries, length;
  int64_t rest = 0, rest_length = 0;  ///< further entries, of another length
  int64_t step;                       ///< floats of a from pixel to pixel
  int64_t jump;                       ///< from the first pixel to that in the middle (rows / 2)
  const float* b;                     ///< [entry][input][channel of the tile]
  float* c;
  int64_t c_step = kBlock;      ///< from pixel to pixel
  int64_t c_skip = 0;           ///< two_rows: more than that to the pixel in the middle
  int64_t c_block;              ///< from one block of channels to the next
  const float* init = nullptr;  ///< added, laid out as c
  const float* bias = nullptr;  ///< added, one for each channel of the tile
  const float* next = nullptr;  ///< what is needed soon: it is asked for with each input
  int64_t ahead = kBlock;       ///< floats of it for each input; fewer only in narrow tiles
  bool clamp = false;
  float lo = 0, hi = 0;
};

using BlockTileFn = void(const BlockTile&);
inline constexpr int kMaxBlockRows = 14;

struct BlockTiles {
  int max_rows;
  int single_rows;  ///< of tiles of one vector of channels
  int lanes;
  BlockTileFn* dense[kMaxBlockRows + 1][3] = {};         ///< step is kBlock
  BlockTileFn* every_second[kMaxBlockRows + 1][3] = {};  ///< step is 2 kBlock
  BlockTileFn* strided[kMaxBlockRows + 1][3] = {};       ///< any step
  BlockTileFn* two_rows[kMaxBlockRows / 2 + 1][3] = {};  ///< [pixels of a row]; step is kBlock
  /// [step - 1]: of an image that is not blocked, pixels of one row; no `rest`. Null for few rows.
  BlockTileFn* plain[kMaxBlockRows + 1][3][2] = {};
  /// Steps of kBlock, init is c or null, no bias and no limits: the sums of each entry are added to
  /// those of all. Where there are none summed_rows is 0.
  BlockTileFn* summed[kMaxBlockRows / 2 + 1][3] = {};
  int summed_rows = 0;
  /// `jump` as in BlockTile.
  BlockTileFn* get(int64_t step, int64_t jump, int rows, int vectors) const {
    if ((step == 1 || step == 2) && jump == rows / 2 * step &&
        plain[rows][vectors][step - 1] != nullptr)
      return plain[rows][vectors][step - 1];
    return (step == kBlock ? dense : step == 2 * kBlock ? every_second : strided)[rows][vectors];
  }
  int64_t panel() const { return 2 * lanes; }  ///< channels of a whole tile
  /// Of a tile at most, of so many output channels in all.
  int pixels(int64_t channels) const { return channels <= lanes ? single_rows : max_rows; }
};
const BlockTiles& block_tiles();

struct BlockConvPlan {
  enum class Algorithm : uint8_t {
    kDirect,
    kClipped,
    kWinograd,
    kGroups,
    kBridged,
    kNarrow,
    kProduct,  ///< of one pixel: its channels, or those of all images, by a matrix
  };
  /// Neighbouring output pixels that one tile computes.
  struct Piece {
    int64_t in, out;  ///< of the first pixel: floats in the image, floats in a block of the output
    int64_t jump;
    int rows;
    uint64_t taps = 0;         ///< kClipped: positions of the kernel inside the image, as bits
    int above = 0, below = 0;  ///< kDirect: rows of the kernel that only see padding
    bool edge = false;         ///< patched: it sees padding
    bool cut() const { return above + below > 0; }
  };
  ConvGeometry shape;
  Algorithm algorithm = Algorithm::kDirect;
  bool plain = false;             ///< the input is not blocked: few channels
  bool plain_output = false;      ///< kNarrow: nor is the output
  bool copy = false;              ///< it is copied with its padding
  bool patched = false;           ///< plain: only what pieces at its edges see is
  int64_t rows = 0, columns = 0;  ///< of the image
  int64_t step = 0;               ///< floats from one output pixel's window to the next
  /// Small images of several: the pixels of a piece are one of each of some images.
  bool over_images = false;
  int64_t out_step = kBlock;  ///< from pixel to pixel of a piece, in a block of the output
  std::vector<Piece> pieces;
  /// [kernel row][input block][column], then those of a block that is not full; or [channel][kernel
  /// row]; kClipped: [input block].
  std::vector<int64_t> offsets;
  std::vector<int64_t> patch_offsets;  ///< the same in a patch
  int64_t patch_columns = 0;
  int64_t length = 0, rest = 0, rest_length = 0;
  int64_t row_entries = 0;  ///< of a row of the kernel, where pieces leave some out; else 0
  int64_t chunk = 0;        ///< entries of the weights that stay in the second cache
  /// What a vector of output channels sums up: as many inputs as its groups have.
  struct Vector {
    int64_t first, entries;  ///< of `offsets`
    int64_t weights;         ///< floats before them
  };
  std::vector<Vector> vectors;  ///< kBridged
  int64_t band = 0;             ///< pieces of a task; Winograd: output channels
  size_t weight_floats = 0, scratch_floats = 0;
  int64_t tiles_y = 0, tiles_x = 0, tile_block = 0;  ///< Winograd
  struct Pixel {
    int64_t y, x;
  };
  std::vector<Pixel> tiles;  ///< Winograd: of an image, their first output pixels
  int64_t joined = 1;        ///< Winograd: groups of the operator in one of the shape
  bool own_blocks = false;   ///< Winograd: a thread takes a block of tiles all the way
  bool on_the_way = false;   ///< Winograd: weights are transformed in every run, not when packed
  /// Winograd: what multiplies transformed tiles, and packs weights: block_winograd.cpp,
  /// digits_winograd.h or f16_winograd.h.
  enum class Products : uint8_t { kFloats, kDigits, kFloat16 };
  Products products = Products::kFloats;

  /// The pieces of one of `parts` parts.
  std::span<const Piece> pieces_of(int64_t part, int64_t parts) const {
    const auto count = static_cast<int64_t>(pieces.size());
    const auto from = static_cast<size_t>(count * part / parts);
    return std::span(pieces).subspan(from, static_cast<size_t>(count * (part + 1) / parts) - from);
  }
  int64_t images_at_once() const { return over_images ? shape.batch : 1; }
  /// Planes of an image, those of all groups, and their floats.
  int64_t image_planes() const {
    const int64_t channels = shape.groups * shape.in_channels;
    return plain ? channels : blocks_of(channels);
  }
  int64_t image_floats() const { return image_planes() * rows * columns * (plain ? 1 : kBlock); }
};

BlockConvPlan plan_block_conv(const ConvGeometry& shape, bool plain, bool allow_winograd = true,
                              bool plain_output = false,
                              BlockConvPlan::Products products = BlockConvPlan::Products::kFloats);
const char* name_of(BlockConvPlan::Algorithm algorithm);
void pack_block_conv(const BlockConvPlan& plan, const float* w, float* packed);
/// The bias has an element for each output channel, the residual is blocked like y.
void run_block_conv(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                    const ConvEpilogue& epilogue, float* scratch);

// The parts.
/// Whether an output is made of the one pixel where it lies.
inline bool is_flat(const ConvGeometry& s) {
  return s.taps() == 1 && s.stride[1] == 1 && s.stride[2] == 1 && s.pad[1] == 0 && s.pad[2] == 0 &&
         s.out[1] == s.in[1] && s.out[2] == s.in[2];
}
/// A bias of so many channels, filled up with zeros in `room` where they leave a block unfilled.
const float* whole_blocks(const float* bias, int64_t channels, float* room);
/// Output pixels of a tile along an axis.
inline int64_t winograd_edge(const ConvGeometry& s, int axis) {
  return winograd_points(s.kernel[axis]) - s.kernel[axis] + 1;
}
/// Whether tiles lie along one axis.
inline bool winograd_line(const ConvGeometry& s) { return s.kernel[1] != s.kernel[2]; }
inline int64_t winograd_matrices(const ConvGeometry& s) {
  return winograd_points(s.kernel[1]) * winograd_points(s.kernel[2]);
}
/// Tiles along an axis. A dilated kernel sees images that lie inside each other, one for each place
/// within the dilation, and each has tiles of its own.
inline int64_t winograd_tiles(const ConvGeometry& s, int axis) {
  const int64_t d = s.dilation[axis], edge = winograd_edge(s, axis);
  return d * (((s.out[axis] + d - 1) / d + edge - 1) / edge);
}
/// Floats from one matrix of transformed tiles to the next, which hold some blocks of channels: an
/// odd number of lines. A tile is spread over all matrices, whose lines would share a few sets of
/// the first cache: a layer of 32 channels and 64 tiles took 1.4 times as long.
inline int64_t winograd_step(int64_t blocks, int64_t tiles) {
  return (blocks * tiles | 1) * kBlock;
}
void plan_block_winograd(BlockConvPlan& plan);
void pack_block_winograd(const BlockConvPlan& plan, const float* w, float* packed);
void run_block_winograd(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                        const ConvEpilogue& epilogue, float* scratch);
/// Whether it takes the shape, which Winograd's filtering would otherwise, or the direct way.
bool plan_block_clipped(BlockConvPlan& plan, bool winograd);
void run_block_clipped(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                       const ConvEpilogue& epilogue);
/// Entries, of so many inputs each, to be summed on their own: the error of a sum grows with the
/// root of its length, and their weights stay near.
int64_t block_chunk(int64_t entries, int64_t length, int64_t longest = 256);
/// Some pieces of one panel of output channels: t has its entries, without plan.rest, its weights
/// and what is the same for all pieces.
void run_block_panel(const BlockConvPlan& plan, BlockTile t, int64_t columns, const float* image,
                     float* y, const ConvEpilogue& epilogue, const float* bias,
                     const float* residual, std::span<const BlockConvPlan::Piece> pieces);
/// Runs of output pixels that tiles take, of one vector of channels perhaps, and how many runs
/// belong together.
void plan_block_pieces(BlockConvPlan& plan, bool one_row, bool one_vector);
/// Whether pieces of one pixel, over the images of a batch, take less time than those of `plan`.
bool pays_over_images(const BlockConvPlan& plan, int64_t most);
/// Cuts the pieces, each to one pixel, and spreads such ones over images.
void cut_to_pixels(BlockConvPlan& plan);
void spread_over_images(BlockConvPlan& plan, int64_t most);
void plan_block_band(BlockConvPlan& plan);
/// Groups of half blocks, which bridge blocks.
void plan_block_bridged(BlockConvPlan& plan);
void pack_block_bridged(const BlockConvPlan& plan, const float* w, float* packed);
void run_block_bridged(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                       const ConvEpilogue& epilogue, float* scratch);
/// Few outputs: whether it takes the shape.
bool plan_block_narrow(BlockConvPlan& plan);
void pack_block_narrow(const BlockConvPlan& plan, const float* w, float* packed);
void run_block_narrow(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                      const ConvEpilogue& epilogue);
/// Rows of one block of channels: `count` ones from the `first` of the image on.
struct BlockRows {
  int64_t first, count;
};
/// Groups that a block has several of: output rows `out` of a block to y, from rows `in` of its
/// input, which lie at x and are all that these outputs see. The residual lies as y does. Of an
/// image of one row, with axis 2, pixels are the rows.
void run_block_group_rows(const BlockConvPlan& plan, const float* packed,
                          const ConvEpilogue& epilogue, int64_t block, BlockRows in, const float* x,
                          BlockRows out, float* y, int axis = 1);
/// All of them.
void run_block_groups(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                      const ConvEpilogue& epilogue, float* scratch);

/// ConvTranspose: `in` of the shape is that of X, `out` that of Y.
struct BlockTransposedPlan {
  /// Output pixels a stride apart.
  struct Phase {
    int64_t rows, columns;  ///< output pixels
    int64_t in, out;        ///< of the first pixel: floats in the image, floats in a block of Y
    int64_t weights;        ///< floats before its own
    std::vector<int64_t> taps,
        offsets;         ///< kernel positions; [input block][position], in the image
    BlockConvPlan part;  ///< of several groups: what it is, as a convolution
  };
  ConvGeometry shape;
  std::vector<Phase> phases;
  bool copy = false;                           ///< the image is X with a border
  int64_t top = 0, left = 0;                   ///< pixels of the border
  int64_t rows = 0, columns = 0;               ///< of the image
  size_t image_floats = 0, result_floats = 0;  ///< of scratch: the image, the results of a part
  size_t weight_floats = 0, scratch_floats = 0;
};
BlockTransposedPlan plan_block_transposed(const ConvGeometry& shape);
void pack_block_transposed(const BlockTransposedPlan& plan, const float* w, float* packed);
/// The bias fills up the last block.
void run_block_transposed(const BlockTransposedPlan& plan, const float* x, const float* packed,
                          const float* bias, float* y, float* scratch);

/// `planes` times [height][width] floats, to [rows][columns] with zeros around them.
void copy_with_border(const float* x, int64_t planes, int64_t height, int64_t width, int64_t top,
                      int64_t left, int64_t rows, int64_t columns, float* image);
/// An image of the plan's convolution as its tiles read it: copied to `room` if plan.copy.
const float* with_border(const BlockConvPlan& plan, const float* image, float* room);

/// Floats of the weights of one group: panels of as many channels as a tile is wide, the last one
/// as wide as it must be to fill up a block.
inline int64_t panel_floats(int64_t inputs, int64_t outputs) {
  return inputs * blocks_of(outputs) * kBlock;
}
/// Output channels that tiles compute: whole vectors, which may leave the end of a block as it is.
inline int64_t vector_channels(int64_t outputs) {
  const int64_t lanes = block_tiles().lanes;
  return (outputs + lanes - 1) / lanes * lanes;
}
/// One panel: w(channel, input) for `outputs` of its `columns` channels, to [input][channel].
template <typename Weight>
void pack_panel(int64_t inputs, int64_t columns, int64_t outputs, const Weight& w, float* out) {
  for (int64_t i = 0; i < inputs; ++i)
    for (int64_t c = 0; c < columns; ++c) *out++ = c < outputs ? w(c, i) : 0.0f;
}

/// Winograd's weights of `columns` output channels from `first` on, whole vectors, of
/// w[output][input][tap]: u[matrix][input][column]. `room` holds their kernels.
void transform_panel(const ConvGeometry& shape, const float* w, int64_t first, int64_t columns,
                     float* room, float* u);

/// Pools over blocked channels; shape.groups is the number of channels.
struct BlockPool {
  ConvGeometry shape;
  bool average = false;
  /// Average: elements that count, of each output row and of each output column.
  std::vector<float> row_counts, column_counts;
};
void run_block_pool(const BlockPool& pool, const float* x, float* y);
/// As run_block_group_rows().
void run_block_pool_rows(const BlockPool& pool, BlockRows in, const float* x, BlockRows out,
                         float* y);
void run_block_global_pool(const float* x, int64_t planes, int64_t pixels, bool average, float* y);

/// Channels first to blocks and back, `plane` pixels.
void block_channels(const float* x, int64_t batch, int64_t channels, int64_t plane, float* y);
void unblock_channels(const float* x, int64_t batch, int64_t channels, int64_t plane, float* y);

}  // namespace tombolo
