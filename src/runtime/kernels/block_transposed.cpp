// ConvTranspose over blocked channels where windows do not meet (the kernel is as large as the
// stride): each kernel position is a product of its own, whose results are every stride-th pixel.

#include <algorithm>

#include "runtime/kernels/block.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {

void pack_block_transposed(const ConvGeometry& s, const float* w, float* packed) {
  const int64_t width = block_tiles().panel(), taps = s.taps(), inputs = s.in_channels;
  const int64_t padded = blocks_of(s.out_channels) * kBlock, panels = (padded + width - 1) / width;
  parallel(taps * panels, std::max<int64_t>(1, 32768 / (inputs * width)),
           [&](int64_t begin, int64_t end) {
             for (int64_t task = begin; task < end; ++task) {
               const int64_t tap = task / panels, first = task % panels * width;
               pack_panel(
                   inputs, std::min(width, padded - first), s.out_channels - first,
                   [&](int64_t o, int64_t i) {
                     return w[(i * s.out_channels + first + o) * taps + tap];
                   },
                   packed + (tap * padded + first) * inputs);
             }
           });
}

void run_block_transposed(const ConvGeometry& s, const float* x, const float* packed,
                          const float* bias, float* y) {
  const BlockTiles& tiles = block_tiles();
  const int64_t width = tiles.panel(), taps = s.taps(), inputs = s.in_channels;
  const int64_t padded = blocks_of(s.out_channels) * kBlock, panels = (padded + width - 1) / width;
  const int64_t in_blocks = blocks_of(inputs), plane = s.in_plane() * kBlock;
  const int64_t out_plane = s.out_plane() * kBlock, full = inputs / kBlock;
  std::vector<int64_t> offsets;
  for (int64_t b = 0; b < in_blocks; ++b) offsets.push_back(b * plane);
  const int64_t cuts = (s.in[2] + tiles.max_rows - 1) / tiles.max_rows;
  // Bands of rows whose inputs stay near; of each all weights are used, one panel after the other.
  const int64_t row_bytes = in_blocks * kBlock * s.in[2] * 4;
  const int64_t band = std::clamp<int64_t>((384 << 10) / row_bytes, 1, s.in[1]);
  const int64_t bands =
      std::max((s.in[1] + band - 1) / band, std::min<int64_t>(s.in[1], 4 * thread_count()));
  const int64_t tasks = taps * panels;
  parallel(s.batch * bands * tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / (bands * tasks), at = task / tasks % bands;
      const int64_t tap = task % tasks / panels, first = task % panels * width;
      const int64_t columns = std::min(width, padded - first);
      BlockTile t{.offsets = offsets.data(),
                  .entries = full,
                  .length = kBlock,
                  .rest = in_blocks - full,
                  .rest_length = inputs % kBlock,
                  .step = kBlock,
                  .b = packed + (tap * padded + first) * inputs,
                  .c_step = s.stride[2] * kBlock,
                  .c_block = out_plane,
                  .bias = bias != nullptr ? bias + first : nullptr};
      for (int64_t row = s.in[1] * at / bands; row < s.in[1] * (at + 1) / bands; ++row) {
        const float* from = x + n * in_blocks * plane + row * s.in[2] * kBlock;
        float* to =
            y + (n * padded + first) / kBlock * out_plane + first % kBlock +
            ((row * s.stride[1] + tap / s.kernel[2]) * s.out[2] + tap % s.kernel[2]) * kBlock;
        for (int64_t i = 0; i < cuts; ++i) {
          const int64_t column = s.in[2] * i / cuts, rows = s.in[2] * (i + 1) / cuts - column;
          t.a = from + column * kBlock;
          t.jump = rows / 2 * kBlock;
          t.c = to + column * t.c_step;
          tiles.dense[rows][columns > tiles.lanes ? 2 : 1](t);
        }
      }
    }
  });
}

}  // namespace tombolo
