// Convolution over blocked channels: which way a shape is computed, and the direct one.

#include "runtime/kernels/conv/block.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/kernels/matmul/activation_post.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

using Algorithm = BlockConvPlan::Algorithm;

/// Kernels that Winograd's filtering takes: squares and lines.
bool is_winograd_kernel(int64_t height, int64_t width) {
  if (height == width) return height == 3 || height == 5;
  const int64_t along = std::max(height, width);
  return std::min(height, width) == 1 && (along == 3 || along == 5 || along == 7);
}

/// Along one axis there is less to save beside the transforms, which take as long for one input and
/// one output as products take for some of the others.
bool repays_lines(const ConvGeometry& s, bool many_tiles) {
  // Networks along one axis have nothing else, so the errors of the largest kernel (2.6 times a
  // plain sum's) add up: bench/'s tcn would have 1.67 times ONNX Runtime's error, and has 1.26.
  if (s.in[1] == 1 && s.kernel[2] == 7) return false;
  const int64_t channels = s.in_channels + s.out_channels;
  return s.in_channels * s.out_channels >= (many_tiles ? 2 : 3) * block_tiles().lanes * channels;
}

/// Multiplications by each weight that a plain sum has: none with rows of padding.
int64_t plain_products(const ConvGeometry& s) {
  int64_t rows = 0;
  for (int64_t y = 0; y < s.out[1]; ++y) {
    const auto [first, last] = positions_inside(s, 1, y);
    rows += last - first;
  }
  return s.batch * rows * s.kernel[2] * s.out[2];
}

/// In how many multiplications a transformed weight arrives: measured with layers of 64 to 512
/// channels of 3 x 3 to 14 x 14 pixels, which wait for little else. Those that a shared cache keeps
/// come twice as fast.
int64_t weight_wait(const ConvGeometry& s) {
  constexpr int64_t kNear = 5 << 19;
  return s.groups * winograd_matrices(s) * s.in_channels * s.out_channels * 4 <= kNear ? 7 : 15;
}

bool winograd_fits(const ConvGeometry& s) {
  if (!is_winograd_kernel(s.kernel[1], s.kernel[2])) return false;
  if (s.in_channels < 16 || s.stride[1] != 1 || s.stride[2] != 1) return false;
  // Few tiles, or such that are mostly outside, save nothing; neither do those whose weights, up to
  // four times as many then, take longer to come than a plain sum.
  const int64_t tiles = s.batch * winograd_tiles(s, 1) * winograd_tiles(s, 2);
  const int64_t matrices = winograd_matrices(s), plain = plain_products(s);
  const bool many_tiles = tiles >= 32;
  if (winograd_line(s) && !repays_lines(s, many_tiles)) return false;
  // One vector of channels has as much to transform as to multiply.
  const int64_t lanes = block_tiles().lanes;
  if (!many_tiles && s.in_channels <= lanes && s.out_channels <= lanes) return false;
  // Tiles of 2 x 2 have as much to transform as those of 4 x 4: few inputs do not repay it.
  if (s.kernel[1] == 5 && s.in_channels < 24 && tiles < 32 * s.batch) return false;
  return tiles >= 4 && tiles * matrices * 10 <= plain * 7 &&
         matrices * weight_wait(s) * 20 <= plain * 19;
}

/// Two groups of half blocks fill whole ones. As one group half of its weights are zeros, which
/// Winograd's filtering still makes less of than plain sums, whose vectors meet the inputs of both
/// groups in the block that they share.
std::optional<ConvGeometry> groups_joined_by_two(const ConvGeometry& s) {
  if (s.groups % 2 != 0) return std::nullopt;
  ConvGeometry whole = s;
  whole.groups /= 2;
  whole.in_channels *= 2;
  whole.out_channels *= 2;
  constexpr int64_t kFewTiles = 12;  // which wait for twice the weights
  const int64_t tiles = s.batch * winograd_tiles(s, 1) * winograd_tiles(s, 2);
  if (tiles < kFewTiles) return std::nullopt;
  if (!takes_groups(whole.groups, whole.in_channels, whole.out_channels) || !winograd_fits(whole) ||
      2 * tiles * winograd_matrices(s) >= plain_products(s))
    return std::nullopt;
  return whole;
}

/// Weights of the operator as those of such groups.
std::vector<float> joined_weights(const BlockConvPlan& plan, const float* w) {
  const ConvGeometry& s = plan.shape;
  const int64_t taps = s.taps(), inputs = s.in_channels / plan.joined * taps;
  const int64_t outputs = s.out_channels / plan.joined;
  std::vector<float> wide(static_cast<size_t>(s.groups * s.out_channels * s.in_channels * taps));
  for (int64_t o = 0; o < s.groups * s.out_channels; ++o)
    std::copy_n(w + o * inputs, inputs,
                wide.data() + (o * plan.joined + o / outputs % plan.joined) * inputs);
  return wide;
}

/// Rows of the kernel that no output of a piece sees the image with: at both ends of an image of
/// few rows that is a good part of all.
void leave_out_rows(BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  for (BlockConvPlan::Piece& piece : plan.pieces) {
    const int64_t begin = piece.out / kBlock, end = begin + piece.rows;
    KernelPositions seen{s.kernel[1] - 1, 1};  // one at least
    for (int64_t row = begin / s.out[2]; row * s.out[2] < end; ++row) {
      const auto [first, last] = positions_inside(s, 1, row);
      if (first < last) seen = {std::min(seen.first, first), std::max(seen.last, last)};
    }
    seen.first = std::min(seen.first, seen.last - 1);
    piece.above = static_cast<int>(seen.first);
    piece.below = static_cast<int>(s.kernel[1] - seen.last);
    if (piece.cut()) plan.row_entries = s.in_channels / kBlock * s.kernel[2];
  }
}

/// An image of few channels is read as it lies, and what pieces at its edges see is copied, each on
/// its own: unless those are many, or the whole is copied as fast, into the first cache.
bool is_patched(const BlockConvPlan& plan, int64_t most) {
  const ConvGeometry& s = plan.shape;
  constexpr int64_t kSmallImage = 8192;
  if (!plan.plain || !plan.copy || s.in_channels * plan.rows * plan.columns <= kSmallImage)
    return false;
  const int64_t right = (s.out[2] - 1) * s.stride[2] + s.extent(2) - s.pad[2] - s.in[2];
  const int64_t edges = (s.pad[2] > 0 ? 1 : 0) + (right > 0 ? 1 : 0);
  return s.out[2] > most && 3 * edges <= (s.out[2] + most - 1) / most;
}

void plan_patches(BlockConvPlan& plan, bool dense) {
  const ConvGeometry& s = plan.shape;
  const auto leaves = [&](int axis, int64_t first, int64_t count) {
    const int64_t begin = first * s.stride[axis] - s.pad[axis];
    return begin < 0 || begin + (count - 1) * s.stride[axis] + s.extent(axis) > s.in[axis];
  };
  for (BlockConvPlan::Piece& piece : plan.pieces) {
    const int64_t pixel = piece.out / kBlock;
    piece.edge = leaves(1, pixel / s.out[2], 1) || leaves(2, pixel % s.out[2], piece.rows);
    plan.patch_columns =
        std::max<int64_t>(plan.patch_columns, (piece.rows - 1) * s.stride[2] + s.extent(2));
  }
  for (int64_t row = 0; row < s.in_channels * s.kernel[1]; ++row)
    for (int64_t k = 0; k < (dense ? 1 : s.kernel[2]); ++k)
      plan.patch_offsets.push_back(row * plan.patch_columns + k * s.dilation[2]);
}

void plan_direct(BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  const bool one_vector = s.out_channels <= block_tiles().lanes;
  const int64_t most = block_tiles().pixels(s.out_channels);
  plan.patched = is_patched(plan, most);
  if (plan.patched) {
    plan.copy = false;
    plan.rows = s.in[1];
    plan.columns = s.in[2];
  }
  const bool flat = !plan.plain && is_flat(s);
  const int64_t pixel = plan.plain ? 1 : kBlock;
  plan.step = s.stride[2] * pixel;
  plan_block_pieces(plan, flat, one_vector);
  const int64_t plane = plan.rows * plan.columns * pixel;
  // All images of the batch have to be copied with their borders then.
  const bool near = !plan.copy || s.batch * plan.image_floats() * 4 <= 4 * near_bytes();
  plan.over_images = near && !plan.patched && pays_over_images(plan, most);
  if (plan.over_images) cut_to_pixels(plan);
  if (plan.plain) {
    // Neighbours along a row of the kernel lie side by side.
    const bool dense = s.dilation[2] == 1;
    plan.length = dense ? s.kernel[2] : 1;
    for (int64_t c = 0; c < s.in_channels; ++c)
      for (int64_t r = 0; r < s.kernel[1]; ++r)
        for (int64_t k = 0; k < (dense ? 1 : s.kernel[2]); ++k)
          plan.offsets.push_back(c * plane + r * s.dilation[1] * plan.columns + k * s.dilation[2]);
    if (plan.patched) plan_patches(plan, dense);
  } else {
    plan.length = kBlock;
    plan.rest_length = s.in_channels % kBlock;
    const int64_t whole = s.in_channels / kBlock;
    const auto add_blocks = [&](int64_t from, int64_t to) {
      for (int64_t r = 0; r < s.kernel[1]; ++r)
        for (int64_t b = from; b < to; ++b)
          for (int64_t k = 0; k < s.kernel[2]; ++k)
            plan.offsets.push_back(b * plane +
                                   (r * s.dilation[1] * plan.columns + k * s.dilation[2]) * kBlock);
    };
    add_blocks(0, whole);
    add_blocks(whole, blocks_of(s.in_channels));
    if (plan.rest_length != 0) plan.rest = s.taps();
    leave_out_rows(plan);
  }
  if (plan.over_images) spread_over_images(plan, most);
  const auto entries = static_cast<int64_t>(plan.offsets.size()) - plan.rest;
  plan.chunk = block_chunk(entries, plan.length);
  plan_block_band(plan);
  plan.weight_floats = static_cast<size_t>(s.groups * s.depth() * vector_channels(s.out_channels));
}

}  // namespace

/// They are cut evenly, and two short rows at a time.
void plan_block_pieces(BlockConvPlan& plan, bool one_row, bool one_vector) {
  const ConvGeometry& s = plan.shape;
  const BlockTiles& tiles = block_tiles();
  const int64_t most = one_vector ? tiles.single_rows : tiles.max_rows;
  const int64_t row_step = s.stride[1] * plan.columns * (plan.plain ? 1 : kBlock);
  // Outputs of one column, as a kernel as wide as the image has them, are a row of another step.
  if (s.out[2] == 1 && !one_row) plan.step = row_step;
  one_row |= s.out[2] == 1;
  const int64_t width = one_row ? s.out_plane() : s.out[2], height = one_row ? 1 : s.out[1];
  const auto add = [&](int64_t row, int64_t column, int64_t rows, int64_t jump) {
    plan.pieces.push_back({row * row_step + column * plan.step, (row * width + column) * kBlock,
                           jump, static_cast<int>(rows)});
  };
  for (int64_t row = 0; row < height; ++row) {
    if (2 * width <= most && row + 1 < height) {
      add(row, 0, 2 * width, row_step);
      ++row;
      continue;
    }
    const int64_t count = (width + most - 1) / most;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = width * i / count, rows = width * (i + 1) / count - from;
      add(row, from, rows, rows / 2 * plan.step);
    }
  }
}

bool pays_over_images(const BlockConvPlan& plan, int64_t most) {
  const ConvGeometry& s = plan.shape;
  if (s.batch == 1) return false;
  // A tile of fewer than four pixels waits for its own sums.
  const auto cost = [](int64_t pixels) { return std::max<int64_t>(pixels, 4) + 1; };
  int64_t each = 0;
  for (const BlockConvPlan::Piece& piece : plan.pieces) each += cost(piece.rows);
  const int64_t tiles = (s.batch + most - 1) / most;
  return s.out_plane() * tiles * cost((s.batch + tiles - 1) / tiles) < each * s.batch;
}

void cut_to_pixels(BlockConvPlan& plan) {
  std::vector<BlockConvPlan::Piece> pixels;
  for (BlockConvPlan::Piece piece : plan.pieces) {
    const int64_t in = piece.in, out = piece.out, jump = piece.jump;
    const int rows = std::exchange(piece.rows, 1), half = rows / 2;
    piece.jump = 0;
    for (int i = 0; i < rows; ++i) {
      piece.in = in + (i < half ? i * plan.step : jump + (i - half) * plan.step);
      piece.out = out + i * kBlock;
      pixels.push_back(piece);
    }
  }
  plan.pieces.swap(pixels);
}

void spread_over_images(BlockConvPlan& plan, int64_t most) {
  const ConvGeometry& s = plan.shape;
  const int64_t in_image = plan.image_floats();
  const int64_t out_image = blocks_of(s.groups * s.out_channels) * s.out_plane() * kBlock;
  const int64_t tiles = (s.batch + most - 1) / most;
  std::vector<BlockConvPlan::Piece> pixels;
  pixels.swap(plan.pieces);
  for (const BlockConvPlan::Piece& piece : pixels)
    for (int64_t i = 0, from = 0; i < tiles; ++i) {
      const int64_t to = s.batch * (i + 1) / tiles;
      BlockConvPlan::Piece& part = plan.pieces.emplace_back(piece);
      part.in += from * in_image;
      part.out += from * out_image;
      part.rows = static_cast<int>(to - from);
      part.jump = part.rows / 2 * in_image;
      from = to;
    }
  plan.over_images = true;
  plan.step = in_image;
  plan.out_step = out_image;
}

void plan_block_band(BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  // Weights that stay near are used for one band of pixels after the other; of larger ones each
  // panel is fetched once for as many pixels as stay near.
  const auto pieces = static_cast<int64_t>(plan.pieces.size());
  const int64_t weights = s.depth() * s.out_channels * 4;
  const int64_t image = (plan.plain ? s.in_channels : blocks_of(s.in_channels) * kBlock) *
                        plan.rows * plan.columns * 4 * plan.images_at_once();
  const int64_t room = weights <= near_bytes() ? 128 << 10 : near_bytes() * 3 / 4;
  plan.band = std::clamp<int64_t>(pieces * room / std::max<int64_t>(image, 1), 1, pieces);
}

/// Whether inputs and outputs are one pixel of all channels.
static bool is_product(const ConvGeometry& s) {
  return s.groups == 1 && is_flat(s) && s.in_plane() == 1;
}

int64_t block_chunk(int64_t entries, int64_t length, int64_t longest) {
  const int64_t bytes = entries * length * block_tiles().panel() * 4;
  const int64_t chunks = std::max({int64_t{1}, (bytes + near_bytes() - 1) / near_bytes(),
                                   (entries * length + longest - 1) / longest});
  return std::max<int64_t>(1, (entries + chunks - 1) / chunks);
}

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kClipped:
      return "clipped";
    case Algorithm::kWinograd:
      return "winograd";
    case Algorithm::kGroups:
      return "groups";
    case Algorithm::kBridged:
      return "bridged";
    case Algorithm::kNarrow:
      return "narrow";
    case Algorithm::kProduct:
      return "product";
    default:
      return "direct";
  }
}

BlockConvPlan plan_block_conv(const ConvGeometry& s, bool plain, bool allow_winograd,
                              bool plain_output, BlockConvPlan::Products products) {
  BlockConvPlan plan;
  plan.products = products;
  plan.shape = s;
  plan.plain = plain;
  plan.plain_output = plain_output;
  plan.rows = s.in[1];
  plan.columns = s.in[2];
  const size_t bias = static_cast<size_t>(blocks_of(s.groups * s.out_channels) * kBlock) + 16;
  if (!plain && shares_blocks(s.groups, s.in_channels, s.out_channels)) {
    plan.algorithm = Algorithm::kGroups;
    plan.weight_floats =
        static_cast<size_t>(blocks_of(s.groups * s.out_channels) * kBlock * s.depth());
    plan.scratch_floats = bias;
    return plan;
  }
  if (is_product(s)) {
    plan.algorithm = Algorithm::kProduct;
    plan.weight_floats = static_cast<size_t>(packed_b_floats(s.in_channels, s.out_channels));
    return plan;
  }
  if (plan_block_narrow(plan)) {
    plan.algorithm = Algorithm::kNarrow;
    plan.scratch_floats = bias;
    return plan;
  }
  const bool bridged = !plain && bridges_blocks(s.groups, s.in_channels, s.out_channels);
  if (bridged && allow_winograd && products == BlockConvPlan::Products::kFloats)
    if (const auto whole = groups_joined_by_two(s)) {
      plan.shape = *whole;
      plan.joined = 2;
    }
  const bool winograd =
      plan.joined > 1 || (!plain && !bridged && allow_winograd && winograd_fits(s));
  if (!bridged && plan_block_clipped(plan, winograd)) {
    plan.scratch_floats = bias;
    return plan;
  }
  if (winograd) {
    plan.algorithm = Algorithm::kWinograd;
    plan_block_winograd(plan);
    plan.scratch_floats += bias;
    return plan;
  }
  for (int axis = 1; axis < 3; ++axis) {
    const int64_t span = (s.out[axis] - 1) * s.stride[axis] + s.extent(axis);
    plan.copy |= s.pad[axis] != 0 || span > s.in[axis];
    (axis == 1 ? plan.rows : plan.columns) = std::max(span, s.in[axis] + s.pad[axis]);
  }
  if (!plan.copy) {
    plan.rows = s.in[1];
    plan.columns = s.in[2];
  }
  if (bridged)
    plan_block_bridged(plan);
  else
    plan_direct(plan);
  plan.scratch_floats = bias;
  if (plan.copy)
    plan.scratch_floats += static_cast<size_t>(plan.image_floats() * plan.images_at_once() + 16);
  return plan;
}

void pack_block_conv(const BlockConvPlan& plan, const float* w, float* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t taps = s.taps();
  if (plan.algorithm == Algorithm::kWinograd) {
    if (plan.joined == 1) return pack_block_winograd(plan, w, packed);
    return pack_block_winograd(plan, joined_weights(plan, w).data(), packed);
  }
  if (plan.algorithm == Algorithm::kBridged) return pack_block_bridged(plan, w, packed);
  if (plan.algorithm == Algorithm::kNarrow) return pack_block_narrow(plan, w, packed);
  if (plan.algorithm == Algorithm::kProduct)
    return pack_b(w, 1, s.in_channels, s.in_channels, s.out_channels, 1, packed);
  if (plan.algorithm == Algorithm::kGroups) {
    // [block][kernel position][input of the group][channel]
    const int64_t channels = s.groups * s.out_channels, depth = s.depth();
    for (int64_t c = 0; c < blocks_of(channels) * kBlock; ++c)
      for (int64_t t = 0; t < taps; ++t)
        for (int64_t i = 0; i < s.in_channels; ++i)
          packed[(c / kBlock * depth + t * s.in_channels + i) * kBlock + c % kBlock] =
              c < channels ? w[c * depth + i * taps + t] : 0.0f;
    return;
  }
  // The order of entries: see plan_direct().
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(s.depth()));
  if (plan.plain) {
    for (int64_t i = 0; i < s.depth(); ++i) order.push_back(i);
  } else if (plan.algorithm == Algorithm::kClipped) {
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t c = 0; c < s.in_channels; ++c) order.push_back(c * taps + t);
  } else {
    const auto add_blocks = [&](int64_t from, int64_t to) {
      for (int64_t r = 0; r < s.kernel[1]; ++r)
        for (int64_t c0 = from; c0 < to; c0 += kBlock)
          for (int64_t t = r * s.kernel[2]; t < (r + 1) * s.kernel[2]; ++t)
            for (int64_t c = c0; c < std::min(to, c0 + kBlock); ++c) order.push_back(c * taps + t);
    };
    const int64_t whole = s.in_channels / kBlock * kBlock;
    add_blocks(0, whole);
    add_blocks(whole, s.in_channels);
  }
  const int64_t depth = s.depth(), width = block_tiles().panel();
  const int64_t padded = vector_channels(s.out_channels), panels = (padded + width - 1) / width;
  parallel(
      s.groups * panels, std::max<int64_t>(1, 32768 / (depth * width)),
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t group = task / panels, first = task % panels * width;
          const float* from = w + (group * s.out_channels + first) * depth;
          pack_panel(
              depth, std::min(width, padded - first), s.out_channels - first,
              [&](int64_t o, int64_t i) { return from[o * depth + order[static_cast<size_t>(i)]]; },
              packed + (group * padded + first) * depth);
        }
      });
}

void copy_with_border(const float* x, int64_t planes, int64_t height, int64_t width, int64_t top,
                      int64_t left, int64_t rows, int64_t columns, float* image) {
  const int64_t inside = std::min(width, columns - left);
  parallel(planes * rows, std::max<int64_t>(1, 16384 / columns), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      float* to = image + task * columns;
      const int64_t from_row = task % rows - top;
      if (from_row < 0 || from_row >= height) {
        std::fill_n(to, columns, 0.0f);
        continue;
      }
      std::fill_n(to, left, 0.0f);
      std::memcpy(to + left, x + (task / rows * height + from_row) * width,
                  static_cast<size_t>(inside) * sizeof(float));
      std::fill_n(to + left + inside, columns - left - inside, 0.0f);
    }
  });
}

const float* with_border(const BlockConvPlan& plan, const float* image, float* room) {
  if (!plan.copy) return image;
  const ConvGeometry& s = plan.shape;
  const int64_t channels = s.groups * s.in_channels, pixel = plan.plain ? 1 : kBlock;
  copy_with_border(image, plan.plain ? channels : blocks_of(channels), s.in[1], s.in[2] * pixel,
                   s.pad[1], s.pad[2] * pixel, plan.rows, plan.columns * pixel, room);
  return room;
}

/// What a piece sees of an image and of the padding around it: [channel][kernel row][column].
static const float* patch_of(const BlockConvPlan& plan, const BlockConvPlan::Piece& piece,
                             const float* image) {
  const ConvGeometry& s = plan.shape;
  const int64_t width = plan.patch_columns, pixel = piece.out / kBlock;
  const int64_t top = pixel / s.out[2] * s.stride[1] - s.pad[1];
  const int64_t left = pixel % s.out[2] * s.stride[2] - s.pad[2];
  const int64_t from = std::clamp<int64_t>(-left, 0, width);
  const int64_t to = std::clamp<int64_t>(s.in[2] - left, from, width);
  float* const patch =
      thread_floats(2, static_cast<size_t>(s.in_channels * s.kernel[1] * width + 16));
  float* out = patch;
  for (int64_t c = 0; c < s.in_channels; ++c)
    for (int64_t r = 0; r < s.kernel[1]; ++r, out += width) {
      const int64_t row = top + r * s.dilation[1];
      if (row < 0 || row >= s.in[1]) {
        std::fill_n(out, width, 0.0f);
        continue;
      }
      std::fill_n(out, from, 0.0f);
      std::memcpy(out + from, image + c * s.in_plane() + row * s.in[2] + left + from,
                  static_cast<size_t>(to - from) * sizeof(float));
      std::fill_n(out + to, width - to, 0.0f);
    }
  return patch;
}

/// An activation that is no part of the tiles takes the results of so many at once, out of the
/// nearest cache: a call costs as much as a tenth of a tile.
static constexpr size_t kPiecesAtOnce = 8;

/// Whether the outputs of a piece lie behind those of the one before it.
static bool goes_on(const BlockConvPlan& plan, const BlockConvPlan::Piece& before,
                    const BlockConvPlan::Piece& piece) {
  return !plan.over_images && piece.out == before.out + before.rows * kBlock;
}

/// Applies an activation that is no part of the tiles to pieces that lie one behind the other.
static void activate(const BlockConvPlan& plan, const Activation& act,
                     std::span<const BlockConvPlan::Piece> pieces, int64_t columns, float* y,
                     int64_t c_block) {
  const int64_t start = pieces.front().out;
  const int64_t n = (pieces.back().out - start) / kBlock + pieces.back().rows;
  // Of few outputs the lanes of most pixels hold nothing: those that count go side by side. All
  // groups count: a vector may have outputs of several.
  const int64_t outputs = plan.shape.groups * plan.shape.out_channels;
  constexpr int64_t kFew = kBlock / 2;
  if (outputs <= std::min(kFew, columns / 2)) {
    alignas(64) float some[kPiecesAtOnce * kMaxBlockRows * kFew];
    float* const to = y + start;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t o = 0; o < outputs; ++o) some[i * outputs + o] = to[i * plan.out_step + o];
    apply_activation(act, some, n * outputs);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t o = 0; o < outputs; ++o) to[i * plan.out_step + o] = some[i * outputs + o];
    return;
  }
  // A tile narrower than a block fills it up with the next one.
  for (int64_t c = 0; c < columns; c += kBlock)
    apply_activation(act, y + start + c / kBlock * c_block, plan.out_step, n,
                     std::min<int64_t>(columns, kBlock));
}

/// Pieces that all see the same entries.
static void run_like_pieces(const BlockConvPlan& plan, BlockTile t, int64_t columns,
                            const float* image, float* y, const Activation& act, const float* bias,
                            const float* residual, std::span<const BlockConvPlan::Piece> pieces) {
  const BlockTiles& tiles = block_tiles();
  const int vectors = columns > tiles.lanes ? 2 : 1;
  const int64_t entries = t.entries, step = plan.step;
  t.lo = act.alpha;
  t.hi = act.beta;
  t.length = plan.length;
  t.rest_length = plan.rest_length;
  t.bias = bias;
  const bool adds = residual != nullptr;
  // Pieces are where they would be in an image with a border.
  const int64_t border =
      plan.patched ? plan.shape.pad[1] * plan.columns + plan.shape.pad[2] : int64_t{0};
  const int64_t* offsets = t.offsets;
  for (int64_t e = 0; e == 0 || e < entries; e += plan.chunk) {
    const int64_t end = std::min(entries, e + plan.chunk);
    const int64_t size = (end - e) * plan.length * columns;
    const int64_t part = (end - e) * plan.length * t.ahead;  // of the weights that come next
    const bool sums = e > 0;
    t.entries = end - e;
    t.rest = end == entries ? plan.rest : 0;
    t.clamp = end == entries && act.kind == Activation::Kind::kClamp;
    const float* const next = t.b + size;
    const bool activates = end == entries && !act.tiled();
    int64_t line = 0;
    size_t raw = 0;  // from this piece on the activation is still to come
    for (size_t p = 0; p < pieces.size(); ++p) {
      const BlockConvPlan::Piece& piece = pieces[p];
      if (piece.edge) {
        t.a = patch_of(plan, piece, image);
        t.offsets = plan.patch_offsets.data() + e;
      } else {
        t.a = image + (piece.in - border);
        t.offsets = offsets;
      }
      t.jump = piece.jump;
      t.c = y + piece.out;
      t.next = line < size ? next + line : nullptr;
      line += part;
      t.init = sums ? t.c : adds ? residual + piece.out : nullptr;
      tiles.get(step, piece.jump, piece.rows, vectors)(t);
      if (!activates) continue;
      if (p + 1 < pieces.size() && p + 1 < raw + kPiecesAtOnce &&
          goes_on(plan, piece, pieces[p + 1]))
        continue;
      activate(plan, act, pieces.subspan(raw, p + 1 - raw), columns, y, t.c_block);
      raw = p + 1;
    }
    offsets += end - e;
    t.b = next;
    t.bias = nullptr;
  }
}

void run_block_panel(const BlockConvPlan& plan, BlockTile t, int64_t columns, const float* image,
                     float* y, const ConvEpilogue& epilogue, const float* bias,
                     const float* residual, std::span<const BlockConvPlan::Piece> pieces) {
  const BlockTiles& tiles = block_tiles();
  const int vectors = columns > tiles.lanes ? 2 : 1;
  const Activation& act = epilogue.activation;
  const int64_t entries = t.entries;
  const auto count = static_cast<int64_t>(pieces.size());
  const int64_t* const offsets = t.offsets;
  const float* const weights = t.b;
  if (tiles.lanes < kBlock)
    t.ahead = std::clamp(columns / std::max<int64_t>(1, count), kBlock / 4, kBlock);
  if (plan.row_entries == 0 ||
      std::none_of(pieces.begin(), pieces.end(), [](const auto& piece) { return piece.cut(); }))
    return run_like_pieces(plan, t, columns, image, y, act, bias, residual, pieces);
  const int64_t row = plan.row_entries, all = plan.shape.kernel[1];
  for (int64_t e = 0; e == 0 || e < entries; e += plan.chunk) {
    const int64_t end = std::min(entries, e + plan.chunk);
    const bool ends = end == entries;
    const float* const b = weights + e * plan.length * columns;
    const int64_t size = (end - e) * plan.length * columns;
    t.lo = act.alpha;
    t.hi = act.beta;
    // Whether a piece is done with these entries, and not before.
    const auto completes = [&](const BlockConvPlan::Piece& piece) {
      if (piece.below == 0 || plan.rest > 0) return ends;
      const int64_t high = (all - piece.below) * row;
      return high > e && high <= end;
    };
    int64_t raw = 0;  // from this piece on the activation is still to come
    for (int64_t p = 0; p < count; ++p) {
      const BlockConvPlan::Piece& piece = pieces[static_cast<size_t>(p)];
      // Of these entries those that it sees, and whether they are its first ones.
      const int64_t low = std::clamp(piece.above * row, e, end);
      const int64_t high = piece.below == 0 ? end : std::clamp((all - piece.below) * row, low, end);
      const bool cut = piece.cut(), first = piece.above * row >= e;
      const bool rests = ends && plan.rest > 0;
      if (low == high && !rests) {
        raw = p + 1;
        continue;
      }
      const bool last = completes(piece);
      t.a = image + piece.in;
      t.jump = piece.jump;
      t.c = y + piece.out;
      BlockTileFn* const tile = tiles.get(plan.step, piece.jump, piece.rows, vectors);
      // While these weights are used, those that come after them come nearer, a part with each
      // piece: all of it with the first ones would wait for the memory.
      const int64_t line = p * (end - e) * plan.length * t.ahead;
      t.next = line < size ? b + size + line : nullptr;
      const auto sum = [&](int64_t begin, int64_t number, int64_t length, const float* of,
                           bool begins, bool done) {
        t.offsets = offsets + begin;
        t.entries = number;
        t.length = length;
        t.b = of;
        t.bias = begins ? bias : nullptr;
        t.init = !begins ? t.c : residual != nullptr ? residual + piece.out : nullptr;
        t.clamp = done && act.kind == Activation::Kind::kClamp;
        tile(t);
      };
      t.rest = rests && !cut ? plan.rest : 0;
      t.rest_length = plan.rest_length;
      const bool rest_apart = rests && cut;
      if (low < high || !rest_apart)
        sum(low, high - low, plan.length, b + (low - e) * plan.length * columns, first,
            last && !rest_apart);
      if (rest_apart) {
        const int64_t of_row = plan.rest / all, skipped = piece.above * of_row;
        sum(entries + skipped, plan.rest - skipped - piece.below * of_row, plan.rest_length,
            weights + (entries * plan.length + skipped * plan.rest_length) * columns,
            first && low == high, true);
      }
      if (!last || act.tiled()) {
        raw = p + 1;
        continue;
      }
      if (p + 1 < count && p + 1 < raw + static_cast<int64_t>(kPiecesAtOnce)) {
        const BlockConvPlan::Piece& next = pieces[static_cast<size_t>(p + 1)];
        if (goes_on(plan, piece, next) && completes(next)) continue;
      }
      activate(plan, act,
               pieces.subspan(static_cast<size_t>(raw), static_cast<size_t>(p + 1 - raw)), columns,
               y, t.c_block);
      raw = p + 1;
    }
  }
}

namespace {

void run_block_direct(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                      const ConvEpilogue& epilogue, float* scratch) {
  const ConvGeometry& s = plan.shape;
  const BlockTiles& tiles = block_tiles();
  const int64_t pixel = plan.plain ? 1 : kBlock;
  const int64_t in_planes = plan.image_planes();
  const int64_t in_plane = s.in_plane() * pixel, plane = plan.rows * plan.columns * pixel;
  const int64_t group_planes = plan.plain ? s.in_channels : blocks_of(s.in_channels);
  const int64_t out_plane = s.out_plane() * kBlock, out_blocks = blocks_of(s.out_channels);
  const int64_t width = tiles.panel(), padded = vector_channels(s.out_channels);
  const int64_t panels = (padded + width - 1) / width;
  const auto pieces = static_cast<int64_t>(plan.pieces.size());
  const bool apart =
      !plan.over_images &&
      images_apart(s.batch, static_cast<int64_t>(plan.weight_floats), s.groups * pieces);
  const int64_t images = plan.images_at_once();
  const int64_t depth = s.depth(), threads = apart ? 1 : thread_count();
  // Bands small enough for all threads to have some. Where weights do not stay near, a thread takes
  // one panel of them after the other, but where to fetch all pixels for each panel is more than to
  // fetch all weights for each band; also where it is less to fetch all pixels than all weights.
  const int64_t pixels = images * (in_planes * in_plane + s.groups * out_blocks * out_plane);
  const int64_t weights = depth * s.out_channels;
  int64_t bands = (pieces + plan.band - 1) / plan.band;
  const bool near =
      (weights * 4 <= near_bytes() || weights * bands < images * in_planes * in_plane * panels) &&
      (threads == 1 || weights * s.groups <= pixels);
  const int64_t others = s.groups * (near ? 1 : panels);
  if (threads > 1) bands = std::max(bands, std::min(pieces, (4 * threads + others - 1) / others));
  const auto run_image = [&](int64_t n, float* room) {
    const float* image = with_border(plan, x + n * in_planes * in_plane, room);
    for (int64_t i = 1; plan.copy && i < images; ++i)
      with_border(plan, x + (n + i) * in_planes * in_plane, room + i * in_planes * plane);
    const int64_t tasks = s.groups * bands * panels;
    // Of few pixels it is the weights that take time, which come from afar.
    const int64_t times = std::max(images * s.out_plane() / bands, kProductsOfAWeight);
    const int64_t cost = std::max<int64_t>(1, times * depth * width);
    const int64_t grain = std::max(near && bands >= threads ? panels : 1, kLeastProducts / cost);
    parallel(tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t group = task / (bands * panels), within = task % (bands * panels);
        const int64_t band = near ? within / panels : within % bands;
        const int64_t first = (near ? within % panels : within / bands) * width;
        const int64_t columns = std::min(width, padded - first);
        const int64_t channel = group * s.out_channels + first;  // whole blocks where groups > 1
        const int64_t at =
            (n * blocks_of(s.groups * s.out_channels) + channel / kBlock) * out_plane +
            channel % kBlock;
        const BlockTile t{.offsets = plan.offsets.data(),
                          .entries = static_cast<int64_t>(plan.offsets.size()) - plan.rest,
                          .step = plan.step,
                          .b = packed + (group * padded + first) * depth,
                          .c_step = plan.out_step,
                          .c_block = out_plane};
        run_block_panel(plan, t, columns, image + group * group_planes * plane, y + at, epilogue,
                        epilogue.bias != nullptr ? epilogue.bias + channel : nullptr,
                        epilogue.residual != nullptr ? epilogue.residual + at : nullptr,
                        plan.pieces_of(band, bands));
      }
    });
  };
  if (!apart) {
    for (int64_t n = 0; n < s.batch; n += images) run_image(n, scratch);
    return;
  }
  parallel(s.batch, 1, [&](int64_t begin, int64_t end) {
    float* room =
        plan.copy ? thread_floats(2, static_cast<size_t>(in_planes * plane + 16)) : nullptr;
    for (int64_t n = begin; n < end; ++n) run_image(n, room);
  });
}

/// The channels of a pixel lie side by side, in blocks or not.
void run_product(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                 const ConvEpilogue& given) {
  const ConvGeometry& s = plan.shape;
  const int64_t step = plan.plain ? s.in_channels : blocks_of(s.in_channels) * kBlock;
  const int64_t out_step = plan.plain_output ? s.out_channels : blocks_of(s.out_channels) * kBlock;
  GemmEpilogue epilogue{.col_bias = given.bias, .init = given.residual, .ldi = out_step};
  const ActivationPost post(given.activation);
  post.set(epilogue);
  gemm(s.batch, s.out_channels, s.in_channels, x, step, packed, y, out_step, epilogue);
}

}  // namespace

const float* whole_blocks(const float* bias, int64_t channels, float* room) {
  const int64_t all = blocks_of(channels) * kBlock;
  if (channels == all) return bias;
  std::copy_n(bias, channels, room);
  std::fill(room + channels, room + all, 0.0f);
  return room;
}

void run_block_conv(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                    const ConvEpilogue& given, float* scratch) {
  if (plan.algorithm == Algorithm::kProduct) return run_product(plan, x, packed, y, given);
  const ConvGeometry& s = plan.shape;
  ConvEpilogue epilogue = given;
  const int64_t channels = s.groups * s.out_channels;
  if (epilogue.bias != nullptr)
    epilogue.bias = whole_blocks(given.bias, channels,
                                 scratch + plan.scratch_floats - blocks_of(channels) * kBlock);
  switch (plan.algorithm) {
    case Algorithm::kDirect:
      return run_block_direct(plan, x, packed, y, epilogue, scratch);
    case Algorithm::kClipped:
      return run_block_clipped(plan, x, packed, y, epilogue);
    case Algorithm::kWinograd:
      return run_block_winograd(plan, x, packed, y, epilogue, scratch);
    case Algorithm::kGroups:
      return run_block_groups(plan, x, packed, y, epilogue, scratch);
    case Algorithm::kBridged:
      return run_block_bridged(plan, x, packed, y, epilogue, scratch);
    case Algorithm::kNarrow:
      return run_block_narrow(plan, x, packed, y, epilogue);
    case Algorithm::kProduct:
      break;  // above
  }
}

}  // namespace tombolo
