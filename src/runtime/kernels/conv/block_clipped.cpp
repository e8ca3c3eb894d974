// Convolution over blocked channels whose kernel mostly reaches beyond the image, as dilated ones
// on small planes do (DeepLab's): output pixels are cut into runs that see the same positions of
// the kernel, and nothing is multiplied by padding, nor is the image copied with it.

#include <algorithm>
#include <vector>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

/// Positions of the kernel along an axis that output `o` sees, as bits.
uint64_t seen(const ConvGeometry& s, int axis, int64_t o) {
  const auto [first, last] = positions_inside(s, axis, o);
  uint64_t bits = 0;
  for (int64_t k = first; k < last; ++k) bits |= uint64_t{1} << k;
  return bits;
}

int64_t tiles_of(int64_t pixels) {
  return (pixels + block_tiles().max_rows - 1) / block_tiles().max_rows;
}

/// What pixels side by side cost for each position: a tile's weights are read for them all.
int64_t cost_of(int64_t pixels) { return pixels + tiles_of(pixels); }

/// Of the whole kernel at every output pixel, by Winograd's filtering where that is done.
int64_t cost_of_all(const ConvGeometry& s, bool winograd) {
  if (winograd) return winograd_tiles(s, 1) * winograd_tiles(s, 2) * winograd_matrices(s) * 8 / 5;
  return s.out[1] * cost_of(s.out[2]) * s.taps();
}

/// Outputs [from, to) along an axis, which see the same positions.
struct Run {
  int64_t from, to;
  uint64_t seen;
};

}  // namespace

bool plan_block_clipped(BlockConvPlan& plan, bool winograd) {
  const ConvGeometry& s = plan.shape;
  // Every position's products are added to what is there: few inputs are not worth that.
  if (plan.plain || s.taps() > 64 || s.in_channels < 4 * kBlock) return false;
  std::vector<Run> runs[3];
  int64_t cost = 1;
  for (const int axis : {1, 2}) {
    int64_t along = 0;
    for (int64_t from = 0, to = 0; from < s.out[axis]; from = to) {
      const uint64_t bits = seen(s, axis, from);
      if (bits == 0) return false;
      for (to = from + 1; to < s.out[axis] && seen(s, axis, to) == bits;) ++to;
      runs[axis].push_back({from, to, bits});
      along += (axis == 1 ? to - from : cost_of(to - from)) * __builtin_popcountll(bits);
    }
    cost *= along;
  }
  if (4 * cost > 3 * cost_of_all(s, winograd)) return false;
  plan.step = s.stride[2] * kBlock;
  for (const Run& rows : runs[1])
    for (int64_t y = rows.from; y < rows.to; ++y)
      for (const Run& columns : runs[2]) {
        uint64_t taps = 0;
        for (int64_t r = 0; r < s.kernel[1]; ++r)
          if (rows.seen >> r & 1) taps |= columns.seen << r * s.kernel[2];
        const int64_t width = columns.to - columns.from, count = tiles_of(width);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t from = columns.from + width * i / count;
          const int64_t pixels = columns.from + width * (i + 1) / count - from;
          const int64_t row = y * s.stride[1] - s.pad[1], column = from * s.stride[2] - s.pad[2];
          plan.pieces.push_back({(row * s.in[2] + column) * kBlock, (y * s.out[2] + from) * kBlock,
                                 pixels / 2 * plan.step, static_cast<int>(pixels), taps});
        }
      }
  if (const int64_t most = block_tiles().max_rows; pays_over_images(plan, most)) {
    cut_to_pixels(plan);
    spread_over_images(plan, most);
  }
  plan.algorithm = BlockConvPlan::Algorithm::kClipped;
  plan.length = kBlock;
  plan.rest_length = s.in_channels % kBlock;
  for (int64_t b = 0; b < blocks_of(s.in_channels); ++b)
    plan.offsets.push_back(b * s.in_plane() * kBlock);
  plan.chunk = block_chunk(s.in_channels / kBlock, kBlock);
  plan.weight_floats = static_cast<size_t>(s.groups * s.depth() * vector_channels(s.out_channels));
  return true;
}

void run_block_clipped(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                       const ConvEpilogue& epilogue) {
  const ConvGeometry& s = plan.shape;
  const BlockTiles& tiles = block_tiles();
  const Activation& act = epilogue.activation;
  const int64_t out_plane = s.out_plane() * kBlock, in_plane = s.in_plane() * kBlock;
  const int64_t padded = vector_channels(s.out_channels), width = tiles.panel();
  const int64_t panels = (padded + width - 1) / width, entries = s.in_channels / kBlock;
  const auto pieces = static_cast<int64_t>(plan.pieces.size());
  const int64_t others = s.groups * panels;
  const int64_t bands = std::min(pieces, (4 * thread_count() + others - 1) / others);
  const int64_t tasks = s.batch / plan.images_at_once() * others * bands;
  parallel(tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t band = task % bands, first = task / bands % panels * width;
      const int64_t group = task / bands / panels % s.groups, n = task / bands / others;
      const int64_t columns = std::min(width, padded - first);
      const int64_t channel = group * s.out_channels + first;
      const int64_t at = (n * blocks_of(s.groups * s.out_channels) + channel / kBlock) * out_plane +
                         channel % kBlock;
      const float* image =
          x +
          (n * blocks_of(s.groups * s.in_channels) + group * blocks_of(s.in_channels)) * in_plane;
      BlockTile t{.length = kBlock,
                  .rest_length = plan.rest_length,
                  .step = plan.step,
                  .b = packed + (group * padded + first) * s.depth(),
                  .c_step = plan.out_step,
                  .c_block = out_plane};
      for (int64_t tap = 0; tap < s.taps(); ++tap) {
        const uint64_t before = (uint64_t{1} << tap) - 1, after = ~before << 1;
        const int64_t shift =
            (tap / s.kernel[2] * s.dilation[1] * s.in[2] + tap % s.kernel[2] * s.dilation[2]) *
            kBlock;
        for (int64_t e = 0; e < entries; e += plan.chunk) {
          t.offsets = plan.offsets.data() + e;
          t.entries = std::min(plan.chunk, entries - e);
          const bool whole = e + t.entries == entries;
          t.rest = whole && plan.rest_length != 0 ? 1 : 0;
          for (int64_t p = pieces * band / bands; p < pieces * (band + 1) / bands; ++p) {
            const BlockConvPlan::Piece& piece = plan.pieces[static_cast<size_t>(p)];
            if ((piece.taps >> tap & 1) == 0) continue;
            const bool start = e == 0 && (piece.taps & before) == 0;
            const bool last = whole && (piece.taps & after) == 0;
            t.a = image + piece.in + shift;
            t.jump = piece.jump;
            t.c = y + at + piece.out;
            t.bias = start && epilogue.bias != nullptr ? epilogue.bias + channel : nullptr;
            t.init = !start                         ? t.c
                     : epilogue.residual != nullptr ? epilogue.residual + at + piece.out
                                                    : nullptr;
            t.clamp = last && act.kind == Activation::Kind::kClamp;
            t.lo = act.alpha;
            t.hi = act.beta;
            tiles.get(plan.step, piece.jump, piece.rows, columns > tiles.lanes ? 2 : 1)(t);
            if (last && !act.tiled())
              for (int64_t c = 0; c < columns; c += kBlock)
                apply_activation(act, t.c + c / kBlock * out_plane, plan.out_step, piece.rows,
                                 std::min<int64_t>(columns, kBlock));
          }
          t.b += (t.entries * kBlock + t.rest * plan.rest_length) * columns;
        }
      }
    }
  });
}

}  // namespace tombolo
