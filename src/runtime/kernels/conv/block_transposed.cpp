// ConvTranspose over blocked channels. Output pixels that lie a stride apart see the same positions
// of the kernel: each such phase of the output is a convolution of stride one by those positions,
// whose results are every stride-th pixel. Nothing is computed twice or spread in memory.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/conv/transposed_phases.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
BlockTransposedPlan plan_block_transposed(const ConvGeometry& s) {
  BlockTransposedPlan plan;
  plan.shape = s;
  const TransposedPhases phases = phases_of(s);
  const int64_t *before = phases.before, *size = phases.size;
  plan.copy = phases.padded(s);
  plan.top = before[1];
  plan.left = before[2];
  plan.rows = size[1];
  plan.columns = size[2];
  const int64_t row = plan.columns * kBlock, plane = plan.rows * row;
  const int64_t padded = blocks_of(s.out_channels) * kBlock;
  size_t part_floats = 0;
  for (const AxisPhase& y : phases.of_axis[1])
    for (const AxisPhase& x : phases.of_axis[2]) {
      BlockTransposedPlan::Phase phase;
      phase.rows = y.count;
      phase.columns = x.count;
      phase.in = (y.input + before[1]) * row + (x.input + before[2]) * kBlock;
      phase.out = (y.output * s.out[2] + x.output) * kBlock;
      phase.weights = static_cast<int64_t>(plan.weight_floats);
      for (const int64_t k : y.taps)
        for (const int64_t l : x.taps) phase.taps.push_back(k * s.kernel[2] + l);
      if (s.groups == 1) {
        for (int64_t b = 0; b < blocks_of(s.in_channels); ++b)
          for (const int64_t k : y.back)
            for (const int64_t l : x.back)
              phase.offsets.push_back(b * plane - k * row - l * kBlock);
        plan.weight_floats += phase.taps.size() * static_cast<size_t>(s.in_channels * padded);
      } else if (!phase.taps.empty()) {
        ConvGeometry g;
        g.batch = s.batch;
        g.groups = s.groups;
        g.in_channels = s.in_channels;
        g.out_channels = s.out_channels;
        const AxisPhase* const along[3] = {nullptr, &y, &x};
        for (const int axis : {1, 2}) {
          const std::vector<int64_t>& back = along[axis]->back;
          g.in[axis] = size[axis];
          g.kernel[axis] = static_cast<int64_t>(back.size());
          g.dilation[axis] = back.size() > 1 ? back[0] - back[1] : 1;
          g.out[axis] = along[axis]->count;
        }
        phase.in -= y.back[0] * row + x.back[0] * kBlock;
        phase.part = plan_block_conv(g, false, false);
        // Packed weights begin at a line.
        plan.weight_floats += (phase.part.weight_floats + 15) / 16 * 16;
        part_floats = std::max(part_floats, phase.part.scratch_floats);
        plan.result_floats = std::max(
            plan.result_floats, static_cast<size_t>(s.batch * blocks_of(s.groups * s.out_channels) *
                                                    y.count * x.count * kBlock));
      }
      plan.phases.push_back(std::move(phase));
    }
  if (plan.copy)
    plan.image_floats =
        static_cast<size_t>(blocks_of(s.groups * s.in_channels) * plane * s.batch + 16);
  plan.scratch_floats = plan.image_floats + plan.result_floats + (part_floats + 15) / 16 * 16;
  return plan;
}

namespace {

/// Each phase as a convolution of its own.
void pack_parts(const BlockTransposedPlan& plan, const float* w, float* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t taps = s.taps(), channels = s.groups * s.out_channels;
  for (const auto& phase : plan.phases) {
    const auto count = static_cast<int64_t>(phase.taps.size());
    if (count == 0) continue;
    // [group][input][output][position] to [group][output][input][position of the phase].
    std::vector<float> turned(static_cast<size_t>(channels * s.in_channels * count));
    float* to = turned.data();
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < s.in_channels; ++i)
        for (const int64_t tap : phase.taps)
          *to++ =
              w[((c / s.out_channels * s.in_channels + i) * s.out_channels + c % s.out_channels) *
                    taps +
                tap];
    pack_block_conv(phase.part, turned.data(), packed + phase.weights);
  }
}

}  // namespace

void pack_block_transposed(const BlockTransposedPlan& plan, const float* w, float* packed) {
  const ConvGeometry& s = plan.shape;
  if (s.groups > 1) return pack_parts(plan, w, packed);
  const int64_t width = block_tiles().panel(), taps = s.taps(), inputs = s.in_channels;
  const int64_t padded = blocks_of(s.out_channels) * kBlock, panels = (padded + width - 1) / width;
  const auto phases = static_cast<int64_t>(plan.phases.size());
  parallel(phases * panels, std::max<int64_t>(1, 32768 / (inputs * width)),
           [&](int64_t begin, int64_t end) {
             for (int64_t task = begin; task < end; ++task) {
               const auto& phase = plan.phases[static_cast<size_t>(task / panels)];
               const int64_t first = task % panels * width;
               const auto count = static_cast<int64_t>(phase.taps.size());
               // The order of entries: see plan_block_transposed().
               std::vector<int64_t> order;
               for (int64_t b = 0; b < inputs; b += kBlock)
                 for (const int64_t tap : phase.taps)
                   for (int64_t i = b; i < std::min(inputs, b + kBlock); ++i)
                     order.push_back(i * s.out_channels * taps + tap);
               pack_panel(
                   inputs * count, std::min(width, padded - first), s.out_channels - first,
                   [&](int64_t o, int64_t i) {
                     return w[order[static_cast<size_t>(i)] + (first + o) * taps];
                   },
                   packed + phase.weights + first * inputs * count);
             }
           });
}

namespace {

/// Rows [from, to) of a phase, for one panel of channels. `t` has what is the same for all of it.
void run_phase(const BlockTransposedPlan& plan, const BlockTransposedPlan::Phase& phase,
               BlockTile t, int64_t columns, const float* bias, int64_t from, int64_t to,
               const float* image, float* y) {
  const ConvGeometry& s = plan.shape;
  const BlockTiles& tiles = block_tiles();
  const int vectors = columns > tiles.lanes ? 2 : 1;
  const int64_t row = plan.columns * kBlock, out_row = s.stride[1] * s.out[2] * kBlock;
  const auto taps = static_cast<int64_t>(phase.taps.size());
  const int64_t entries = s.in_channels / kBlock * taps;
  const int64_t chunk = block_chunk(entries, kBlock, 128);
  const int64_t cuts = (phase.columns + tiles.max_rows - 1) / tiles.max_rows;
  // Two short rows at a time.
  const bool two = 2 * phase.columns <= tiles.max_rows;
  t.c_skip = out_row - phase.columns * t.c_step;
  const float* weights = t.b;
  if (tiles.lanes < kBlock)
    t.ahead = std::clamp(columns / std::max<int64_t>(1, (to - from) * cuts), kBlock / 4, kBlock);
  for (int64_t e = 0; e == 0 || e < entries; e += chunk) {
    t.offsets = phase.offsets.data() + e;
    t.entries = std::min(chunk, entries - e);
    t.rest = e + chunk >= entries && s.in_channels % kBlock != 0 ? taps : 0;
    t.b = weights + e * kBlock * columns;
    t.bias = e == 0 ? bias : nullptr;
    // The weights that come next come nearer meanwhile, a part with each tile.
    const int64_t size = t.entries * kBlock * columns;
    int64_t line = 0;
    for (int64_t r = from; r < to; ++r) {
      const float* const a = image + phase.in + r * row;
      float* const c = y + phase.out + r * out_row;
      const auto run = [&](BlockTileFn* tile, int64_t column, int64_t jump) {
        t.a = a + column * kBlock;
        t.jump = jump;
        t.c = c + column * t.c_step;
        t.init = e == 0 ? nullptr : t.c;
        t.next = line < size ? t.b + size + line : nullptr;
        line += t.entries * kBlock * t.ahead;
        tile(t);
      };
      if (two && r + 1 < to) {
        run(tiles.two_rows[phase.columns][vectors], 0, row);
        ++r;
        continue;
      }
      for (int64_t i = 0; i < cuts; ++i) {
        const int64_t column = phase.columns * i / cuts;
        const int64_t pixels = phase.columns * (i + 1) / cuts - column;
        run(tiles.dense[pixels][vectors], column, pixels / 2 * kBlock);
      }
    }
  }
}

/// Pixels of a phase that no position of the kernel sees.
void fill_phase(const BlockTransposedPlan& plan, const BlockTransposedPlan::Phase& phase,
                int64_t columns, const float* bias, int64_t from, int64_t to, int64_t out_plane,
                float* y) {
  const ConvGeometry& s = plan.shape;
  const int64_t pixel = s.stride[2] * kBlock, row = s.stride[1] * s.out[2] * kBlock;
  for (int64_t c = 0; c < columns; c += kBlock) {
    const int64_t count = std::min(columns - c, kBlock);
    float* const block = y + phase.out + c / kBlock * out_plane;
    for (int64_t r = from; r < to; ++r)
      for (int64_t i = 0; i < phase.columns; ++i) {
        float* const to_pixel = block + r * row + i * pixel;
        if (bias != nullptr)
          std::copy_n(bias + c, count, to_pixel);
        else
          std::fill_n(to_pixel, count, 0.0f);
      }
  }
}

/// Each phase as a convolution of its own, whose pixels then go where they belong.
void run_parts(const BlockTransposedPlan& plan, const float* image, const float* packed,
               const float* bias, float* y, float* scratch) {
  const ConvGeometry& s = plan.shape;
  const int64_t channels = s.groups * s.out_channels, blocks = s.batch * blocks_of(channels);
  const int64_t out_plane = s.out_plane() * kBlock, pixel = s.stride[2] * kBlock;
  const int64_t out_row = s.stride[1] * s.out[2] * kBlock;
  float* const result = scratch;
  for (const auto& phase : plan.phases) {
    if (phase.taps.empty()) {
      for (int64_t n = 0; n < s.batch; ++n)
        fill_phase(plan, phase, blocks_of(channels) * kBlock, bias, 0, phase.rows, out_plane,
                   y + n * blocks_of(channels) * out_plane);
      continue;
    }
    run_block_conv(phase.part, image + phase.in, packed + phase.weights, result, {.bias = bias},
                   scratch + plan.result_floats);
    parallel(blocks * phase.rows, std::max<int64_t>(1, 1024 / phase.columns),
             [&](int64_t begin, int64_t end) {
               for (int64_t r = begin; r < end; ++r) {
                 const float* from = result + r * phase.columns * kBlock;
                 float* to = y + r / phase.rows * out_plane + phase.out + r % phase.rows * out_row;
                 for (int64_t i = 0; i < phase.columns; ++i, from += kBlock, to += pixel)
                   std::memcpy(to, from, kBlock * sizeof(float));
               }
             });
  }
}

}  // namespace

void run_block_transposed(const BlockTransposedPlan& plan, const float* x, const float* packed,
                          const float* bias, float* y, float* scratch) {
  const ConvGeometry& s = plan.shape;
  const int64_t width = block_tiles().panel(), inputs = s.in_channels;
  const int64_t padded = blocks_of(s.out_channels) * kBlock, panels = (padded + width - 1) / width;
  const int64_t in_blocks = blocks_of(inputs), plane = plan.rows * plan.columns * kBlock;
  const int64_t out_plane = s.out_plane() * kBlock;
  const float* image = x;
  if (plan.copy) {
    copy_with_border(x, s.batch * blocks_of(s.groups * inputs), s.in[1], s.in[2] * kBlock, plan.top,
                     plan.left * kBlock, plan.rows, plan.columns * kBlock, scratch);
    image = scratch;
  }
  if (s.groups > 1) return run_parts(plan, image, packed, bias, y, scratch + plan.image_floats);
  // Bands of rows whose inputs stay near; of each all weights are used, one panel after the other.
  // All threads have some.
  const auto phases = static_cast<int64_t>(plan.phases.size());
  const int64_t tasks = phases * panels, threads = thread_count();
  int64_t bands = (plane * in_blocks * 4 + (384 << 10) - 1) / (384 << 10);
  if (threads > 1) bands = std::max(bands, 4 * threads / (s.batch * tasks));
  bands = std::clamp<int64_t>(bands, 1, s.in[1]);
  const int64_t work = s.in_plane() * s.taps() * inputs * padded / (bands * tasks);
  parallel(s.batch * bands * tasks, std::max<int64_t>(1, 100'000 / std::max<int64_t>(1, work)),
           [&](int64_t begin, int64_t end) {
             for (int64_t task = begin; task < end; ++task) {
               const int64_t n = task / (bands * tasks), band = task / tasks % bands;
               const auto& phase = plan.phases[static_cast<size_t>(task % tasks / panels)];
               const int64_t first = task % panels * width;
               const int64_t columns = std::min(width, padded - first);
               const auto taps = static_cast<int64_t>(phase.taps.size());
               const int64_t from = phase.rows * band / bands, to = phase.rows * (band + 1) / bands;
               const float* const own = bias != nullptr ? bias + first : nullptr;
               float* const out = y + (n * padded + first) / kBlock * out_plane + first % kBlock;
               if (taps == 0) {
                 fill_phase(plan, phase, columns, own, from, to, out_plane, out);
                 continue;
               }
               const BlockTile t{.length = kBlock,
                                 .rest_length = inputs % kBlock,
                                 .step = kBlock,
                                 .b = packed + phase.weights + first * inputs * taps,
                                 .c_step = s.stride[2] * kBlock,
                                 .c_block = out_plane};
               run_phase(plan, phase, t, columns, own, from, to, image + n * in_blocks * plane,
                         out);
             }
           });
}

}  // namespace tombolo
