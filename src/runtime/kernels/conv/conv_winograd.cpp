// Winograd's minimal filtering F(4x4, 3x3) (winograd-inl.h). Vectors run along a row of tiles. Of
// images with depth every slice is transformed once, and the products of a kernel's slices with
// those that they see are added before the results are transformed back.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/conv_winograd.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/conv/winograd-inl.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_WINOGRAD_TASK
#define TOMBOLO_WINOGRAD_TASK
namespace tombolo {
namespace {

struct InputTask {
  const float* image;  ///< a channel: [row][column phase][column]
  int64_t row_step, phase_step;
  float* v;  ///< of that channel: [matrix][tile]
  int64_t matrix_step;
};

struct OutputTask {
  const float* m;  ///< of a channel: [matrix][tile]
  int64_t matrix_step;
  float* rows;  ///< where four rows of outputs go
  int64_t row_step;
};

}  // namespace
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void input_tiles(D d, const InputTask& task, int64_t column, int64_t to) {
  using V = hn::Vec<D>;
  HWY_ALIGN float half[36 * HWY_LANES(float)];
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int i = 0; i < 6; ++i) {
    const float* row = task.image + i * task.row_step + column;
    const int64_t phase = task.phase_step;
    const V x[6] = {hn::LoadU(d, row),
                    hn::LoadU(d, row + phase),
                    hn::LoadU(d, row + 2 * phase),
                    hn::LoadU(d, row + 3 * phase),
                    hn::LoadU(d, row + 1),
                    hn::LoadU(d, row + phase + 1)};
    V y[6];
    transform(d, x, y);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) hn::Store(y[j], d, half + (i * 6 + j) * lanes);
  }
  for (int j = 0; j < 6; ++j) {
    const float* in = half + j * lanes;
    V x[6], y[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) x[i] = hn::Load(d, in + i * 6 * lanes);
    transform(d, x, y);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) hn::StoreU(y[i], d, task.v + to + (i * 6 + j) * task.matrix_step);
  }
}

/// Tiles [column, column + count) of a row of tiles, to v[..., to...].
void input_row(const InputTask& task, int64_t column, int64_t count, int64_t to) {
  const hn::ScalableTag<float> full;
  const hn::CappedTag<float, 8> half;
  const hn::CappedTag<float, 4> quarter;
  const auto lanes = static_cast<int64_t>(hn::Lanes(full));
  int64_t i = 0;
  while (i < count) {
    const int64_t left = count - i;
    if (left <= 4) {
      input_tiles(quarter, task, column + i, to + i);
      i += 4;
    } else if (left <= 8 && lanes > 8) {
      input_tiles(half, task, column + i, to + i);
      i += 8;
    } else {
      input_tiles(full, task, column + i, to + i);
      i += lanes;
    }
  }
}

template <class D>
HWY_INLINE void output_tiles(D d, const OutputTask& task, int64_t from, int64_t to) {
  using V = hn::Vec<D>;
  HWY_ALIGN float half[24 * HWY_LANES(float)];
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = 6 * task.matrix_step;
  for (int j = 0; j < 6; ++j) {
    const float* in = task.m + from + j * task.matrix_step;
    V x[6], y[4];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) x[i] = hn::LoadU(d, in + i * step);
    inverse(d, x, y);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) hn::Store(y[i], d, half + (i * 6 + j) * lanes);
  }
  for (int i = 0; i < 4; ++i) {
    const float* in = half + i * 6 * lanes;
    V x[6], y[4];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) x[j] = hn::Load(d, in + j * lanes);
    inverse(d, x, y);
    hn::StoreInterleaved4(y[0], y[1], y[2], y[3], d, task.rows + i * task.row_step + 4 * to);
  }
}

/// Tiles m[..., from...] of one row of tiles, to the four rows of outputs.
void output_row(const OutputTask& task, int64_t from, int64_t count) {
  const hn::ScalableTag<float> full;
  const hn::CappedTag<float, 8> half;
  const hn::CappedTag<float, 4> quarter;
  const auto lanes = static_cast<int64_t>(hn::Lanes(full));
  int64_t i = 0;
  while (i < count) {
    const int64_t left = count - i;
    if (left <= 4) {
      output_tiles(quarter, task, from + i, i);
      i += 4;
    } else if (left <= 8 && lanes > 8) {
      output_tiles(half, task, from + i, i);
      i += 8;
    } else {
      output_tiles(full, task, from + i, i);
      i += lanes;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

/// The image that tiles are read from: columns split into four phases.
ConvGeometry tile_shape(const ConvPlan& plan) {
  ConvGeometry s = plan.shape;
  s.stride[2] = 4;
  s.kernel[1] = 1;
  s.kernel[2] = 6;
  s.out[1] = plan.tiles_y * 4 + 2;
  s.out[2] = plan.tiles_x;
  return s;
}

constexpr int64_t kSpill = 16;  ///< whole vectors are read and written at the end of a row
constexpr int64_t kDepth = 512;

/// Tiles of one slice.
int64_t slice_tiles(const ConvPlan& plan) { return plan.tiles_y * plan.tiles_x; }

/// Floats of a channel's tiles of a block, with those of the slices after it that kernels see.
int64_t row_of(const ConvPlan& plan) {
  const int64_t tiles = plan.tile_block + (plan.shape.kernel[0] - 1) * slice_tiles(plan);
  return (tiles + 15) / 16 * 16 + kSpill;
}

struct Work {
  const ConvPlan& plan;
  const float* images;
  const float* packed;
  float* y;
  const ConvEpilogue& epilogue;
  float* v;
  float* m;
  int64_t row;     ///< floats of a row of v and m
  int64_t weight;  ///< floats of a packed matrix
  int64_t group;   ///< first image channel and first output channel are those of this group
};

void transform_inputs(const Work& w, int64_t first, int64_t last, int64_t begin, int64_t end) {
  const ConvPlan& plan = w.plan;
  const auto& run = TOMBOLO_TARGET(void(const InputTask&, int64_t, int64_t, int64_t), input_row);
  auto* const fn = run.get();
  const ConvGeometry& s = plan.shape;
  const int64_t channels = s.in_channels, columns = plan.tiles_x, tiles = slice_tiles(plan);
  // Of kernels with depth a block has whole slices of one image, and those after it that they see.
  const int64_t after = (s.kernel[0] - 1) * tiles;
  for (int64_t c = first; c < last; ++c) {
    for (int64_t t = begin; t < end + after;) {
      const int64_t ty = t % tiles / columns, tx = t % columns;
      const int64_t n = std::min(t, end - 1) / (tiles * s.out[0]);
      const int64_t slice = (t / tiles - n * s.out[0]) * s.stride[0];
      const int64_t count = std::min(columns - tx, end + after - t);
      const float* image = w.images + ((n * s.groups + w.group) * channels + c) * plan.image.plane +
                           slice * plan.image.slice;
      InputTask task{image + ty * 4 * plan.image.columns, plan.image.columns, plan.image.phase,
                     w.v + c * w.row, channels * w.row};
      fn(task, tx, count, t - begin);
      t += count;
    }
  }
}

void multiply(const Work& w, int64_t matrix, int64_t tile_from, int64_t tile_to, int64_t count) {
  const ConvGeometry& s = w.plan.shape;
  const GemmTiles& tiles = gemm_tiles();
  const int64_t width = tiles.panel(), rows = tiles.tile_rows(s.out_channels);
  const float* v = w.v + matrix * s.in_channels * w.row;
  float* m = w.m + matrix * s.out_channels * w.row;
  const float* packed = w.packed + matrix * w.weight;
  const int64_t slice = w.weight / s.kernel[0], shift = slice_tiles(w.plan);
  for (int64_t d = 0; d < s.kernel[0]; ++d) {
    for (int64_t k0 = 0; k0 < s.in_channels; k0 += kDepth) {
      const int64_t k = std::min(kDepth, s.in_channels - k0);
      for (int64_t t = tile_from; t < tile_to; ++t) {
        const int64_t row = t * rows;
        const int height = static_cast<int>(std::min(rows, s.out_channels - row));
        GemmTile tile{.a = packed + d * slice + (t * s.in_channels + k0) * rows,
                      .lda = rows,
                      .ldb = w.row,
                      .k = k,
                      .ldc = w.row,
                      .ldi = w.row};
        for (int64_t p = 0; p < count; p += width) {
          tile.b = v + k0 * w.row + d * shift + p;
          tile.c = m + row * w.row + p;
          tile.cols = std::min(width, count - p);
          if (k0 != 0 || d != 0) tile.init = tile.c;
          // The weights of the next tile come nearer meanwhile.
          tile.next = tile.a + s.in_channels * rows + p / width * k * 16;
          if (p / width * 16 > rows) tile.next = tile.a;
          tiles.packed_tile(height, tile.cols)(tile);
        }
      }
    }
  }
}

void transform_outputs(const Work& w, int64_t first, int64_t last, int64_t begin, int64_t end) {
  const ConvPlan& plan = w.plan;
  const ConvGeometry& s = plan.shape;
  auto* const fn = TOMBOLO_TARGET(void(const OutputTask&, int64_t, int64_t), output_row).get();
  const int64_t columns = plan.tiles_x, tiles = slice_tiles(plan);
  const int64_t step = 4 * columns + 4 * kSpill;
  float* rows = thread_floats(1, static_cast<size_t>(4 * step));
  for (int64_t c = first; c < last; ++c) {
    const int64_t channel = w.group * s.out_channels + c;
    for (int64_t t = begin; t < end;) {
      const int64_t n = t / (tiles * s.out[0]), slice = t / tiles % s.out[0];
      const int64_t ty = t % tiles / columns, tx = t % columns;
      const int64_t count = std::min(columns - tx, end - t);
      fn({w.m + c * w.row, s.out_channels * w.row, rows, step}, t - begin, count);
      const int64_t width = std::min(4 * count, s.out[2] - 4 * tx);
      for (int64_t i = 0; i < std::min<int64_t>(4, s.out[1] - 4 * ty); ++i) {
        const int64_t at =
            (((n * s.groups * s.out_channels + channel) * s.out[0] + slice) * s.out[1] + 4 * ty +
             i) *
                s.out[2] +
            4 * tx;
        finish_row(rows + i * step, w.epilogue.bias != nullptr ? w.epilogue.bias[channel] : 0,
                   w.epilogue.residual != nullptr ? w.epilogue.residual + at : nullptr,
                   w.epilogue.activation, width, w.y + at);
      }
      t += count;
    }
  }
}

/// Whether every thread works on blocks of its own, from image to output: pays while the weights
/// stay in its second cache beside them.
bool private_blocks(const ConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  const int64_t tiles = s.batch * s.out[0] * slice_tiles(plan);
  return s.kernel[0] == 1 && s.in_channels * s.out_channels <= 64 * 128 &&
         (tiles >= 64 * 2 * thread_count() || groups_apart(s));
}

}  // namespace

void plan_winograd(ConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  plan.tiles_y = (s.out[1] + 3) / 4;
  plan.tiles_x = (s.out[2] + 3) / 4;
  plan.image = plan_image(tile_shape(plan));
  plan.image.copy = true;
  const int64_t tiles = s.batch * s.out[0] * slice_tiles(plan);
  const int64_t tile_floats = kMatrices * (s.in_channels + s.out_channels);
  const int64_t width = gemm_tiles().panel();
  plan.own_blocks = private_blocks(plan);
  const int64_t room = plan.own_blocks ? 300'000 : 4'000'000;
  plan.tile_block = std::clamp(room / tile_floats / width * width, 2 * width, 16 * width);
  if (s.kernel[0] > 1) {
    const int64_t slices = std::clamp<int64_t>(plan.tile_block / slice_tiles(plan), 1, s.out[0]);
    plan.tile_block = slices * slice_tiles(plan);
  } else if (!plan.own_blocks) {
    // Blocks of one size: 49 + 49, not 64 + 34.
    const int64_t blocks = (tiles + plan.tile_block - 1) / plan.tile_block;
    plan.tile_block = (tiles + blocks - 1) / blocks;
  }
  plan.weight_floats = static_cast<size_t>(s.groups * kMatrices * s.kernel[0] *
                                           packed_a_floats(s.out_channels, s.in_channels));
  plan.scratch_floats =
      static_cast<size_t>(s.batch * s.groups * s.in_channels * plan.image.plane + 64) +
      (plan.own_blocks ? 0 : static_cast<size_t>(tile_floats * row_of(plan)) + 64);
}

void pack_winograd(const ConvPlan& plan, const float* w, float* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t rows = gemm_tiles().tile_rows(s.out_channels), inputs = s.in_channels;
  const int64_t weight = packed_a_floats(s.out_channels, inputs), depth = s.kernel[0];
  const int64_t panels = weight / std::max<int64_t>(1, inputs) / rows;
  // A panel of outputs at a time: they are neighbours in each of the matrices; of some inputs, as
  // the matrices lie far from each other.
  constexpr int64_t kAtOnce = 16, kTaps = 9, kVector = 16;
  const int64_t columns = round_up(rows, 8), step = kAtOnce * rows + kVector;
  parallel(s.groups * panels, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> kernels(static_cast<size_t>(kAtOnce * kTaps * columns));
    std::vector<float> room(static_cast<size_t>(kMatrices * step));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t group = task / panels, panel = task % panels;
      const int64_t count = std::min(rows, s.out_channels - panel * rows);
      if (count < rows) std::fill(kernels.begin(), kernels.end(), 0.0f);
      const float* from = w + (group * s.out_channels + panel * rows) * inputs * depth * kTaps;
      for (int64_t d = 0; d < depth; ++d)
        for (int64_t c = 0; c < inputs; c += kAtOnce) {
          const int64_t some = std::min(kAtOnce, inputs - c);
          // Those of one slice follow each other; of several, each by itself.
          const int64_t pieces = depth == 1 ? 1 : some;
          for (int64_t piece = 0; piece < pieces; ++piece)
            transpose_tile(
                reinterpret_cast<const std::byte*>(from + ((c + piece) * depth + d) * kTaps),
                inputs * depth * kTaps,
                reinterpret_cast<std::byte*>(kernels.data() + piece * kTaps * columns), columns,
                count, some / pieces * kTaps, sizeof(float));
          winograd_weights({3, 3}, kernels.data(), some, columns, room.data(), rows, step);
          float* to =
              packed + (group * kMatrices * depth + d) * weight + (panel * inputs + c) * rows;
          for (int64_t m = 0; m < kMatrices; ++m)
            std::copy_n(room.data() + m * step, some * rows, to + m * depth * weight);
        }
    }
  });
}

void run_winograd(const ConvPlan& plan, const float* x, const float* packed, float* y,
                  const ConvEpilogue& epilogue, float* scratch) {
  const ConvGeometry& s = plan.shape;
  const ConvGeometry image_shape = tile_shape(plan);
  const int64_t channels = s.batch * s.groups * s.in_channels;
  parallel(channels, std::max<int64_t>(1, 8192 / plan.image.plane),
           [&](int64_t begin, int64_t end) {
             for (int64_t c = begin; c < end; ++c)
               split_image(image_shape, plan.image, x + c * s.in_plane(), 0,
                           scratch + c * plan.image.plane);
           });
  const int64_t image_tiles = s.out[0] * slice_tiles(plan), tiles = s.batch * image_tiles;
  const int64_t weight = s.kernel[0] * packed_a_floats(s.out_channels, s.in_channels);
  const int64_t row = row_of(plan);
  const int64_t tile_rows = gemm_tiles().tile_rows(s.out_channels);
  const int64_t row_tiles = (s.out_channels + tile_rows - 1) / tile_rows;
  const int64_t blocks = (tiles + plan.tile_block - 1) / plan.tile_block;
  const int64_t v_floats = kMatrices * s.in_channels * row;
  const auto work_of = [&](int64_t group) {
    return Work{
        plan,   scratch, packed + group * kMatrices * weight, y, epilogue, nullptr, nullptr, row,
        weight, group};
  };
  if (plan.own_blocks) {
    parallel(blocks * s.groups, 1, [&](int64_t first, int64_t last) {
      float* const v =
          thread_floats(2, static_cast<size_t>(v_floats + kMatrices * s.out_channels * row + 64));
      for (int64_t task = first; task < last; ++task) {
        Work own = work_of(task % s.groups);
        own.v = v;
        own.m = v + v_floats;
        const int64_t begin = task / s.groups * plan.tile_block;
        const int64_t end = std::min(tiles, begin + plan.tile_block);
        transform_inputs(own, 0, s.in_channels, begin, end);
        for (int64_t m = 0; m < kMatrices; ++m) multiply(own, m, 0, row_tiles, end - begin);
        transform_outputs(own, 0, s.out_channels, begin, end);
      }
    });
    return;
  }
  for (int64_t group = 0; group < s.groups; ++group) {
    Work work = work_of(group);
    work.v = scratch + channels * plan.image.plane + 64;
    work.m = work.v + v_floats;
    for (int64_t begin = 0, end = 0; begin < tiles; begin = end) {
      end = std::min(tiles, begin + plan.tile_block);
      if (s.kernel[0] > 1) end = std::min(end, (begin / image_tiles + 1) * image_tiles);
      parallel(
          s.in_channels, std::max<int64_t>(1, 512 / (end - begin)),
          [&](int64_t first, int64_t last) { transform_inputs(work, first, last, begin, end); });
      parallel(kMatrices, 1, [&](int64_t first, int64_t last) {
        for (int64_t m = first; m < last; ++m) multiply(work, m, 0, row_tiles, end - begin);
      });
      parallel(
          s.out_channels, std::max<int64_t>(1, 512 / (end - begin)),
          [&](int64_t first, int64_t last) { transform_outputs(work, first, last, begin, end); });
    }
  }
}

}  // namespace tombolo
#endif
