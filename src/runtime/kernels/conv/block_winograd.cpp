// Winograd's minimal filtering over blocked channels, F(4x4, 3x3) and F(2x2, 5x5), and along one
// axis F(4, 3), F(2, 5) and F(2, 7): vectors are channels of one tile.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/block_winograd.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/conv/digits_winograd.h"
#include "runtime/kernels/conv/f16_winograd.h"
#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/conv/share_transforms.h"
#include "runtime/kernels/conv/winograd-inl.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::CappedTag<float, 16>;
using V = hn::Vec<F>;

/// 6 x 6 pixels of one block to v[matrix * matrix_step].
void input_tile(const float* x, int64_t row_step, int64_t pixel_step, float* v,
                int64_t matrix_step) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  HWY_ALIGN float half[36 * HWY_LANES(float)];
  for (int64_t lane = 0; lane < kBlock; lane += lanes) {
    for (int i = 0; i < 6; ++i) {
      V in[6], out[6];
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) in[j] = hn::LoadU(f, x + i * row_step + j * pixel_step + lane);
      transform(f, in, out);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) hn::Store(out[j], f, half + (i * 6 + j) * lanes);
    }
    for (int j = 0; j < 6; ++j) {
      V in[6], out[6];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) in[i] = hn::Load(f, half + (i * 6 + j) * lanes);
      transform(f, in, out);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) hn::StoreU(out[i], f, v + lane + (i * 6 + j) * matrix_step);
    }
  }
}

/// The same of pixels along one axis.
template <int kPoints>
void input_line(const float* x, int64_t step, float* v, int64_t matrix_step) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  for (int64_t lane = 0; lane < kBlock; lane += lanes) {
    V in[kPoints], out[kPoints];
#pragma GCC unroll 8
    for (int i = 0; i < kPoints; ++i) in[i] = hn::LoadU(f, x + i * step + lane);
    transform(f, in, out);
#pragma GCC unroll 8
    for (int i = 0; i < kPoints; ++i) hn::StoreU(out[i], f, v + lane + i * matrix_step);
  }
}
/// By the kernel's greater axis; `line`: the other one is 1.
void input(int64_t kernel, bool line, const float* x, int64_t row_step, int64_t pixel_step,
           float* v, int64_t matrix_step) {
  if (!line) return input_tile(x, row_step, pixel_step, v, matrix_step);
  (kernel == 7 ? input_line<8> : input_line<6>)(x, pixel_step, v, matrix_step);
}

/// What becomes of the sums of a block.
struct Finish {
  const float* bias;
  const float* residual;  ///< strides are those of the output
  bool clamp;
  float lo, hi;
  float* y;

  HWY_INLINE V biases(int64_t lane) const {
    return bias != nullptr ? hn::LoadU(F(), bias + lane) : hn::Zero(F());
  }
  HWY_INLINE void store(V v, V b, int64_t at) const {
    const F f;
    v = hn::Add(v, b);
    if (residual != nullptr) v = hn::Add(v, hn::LoadU(f, residual + at));
    if (clamp) v = min_of(hn::Set(f, hi), max_of(hn::Set(f, lo), v));
    hn::StoreU(v, f, y + at);
  }
};

/// m[matrix * matrix_step] of one block to kEdge x kEdge pixels, finished.
template <int kEdge>
HWY_INLINE void output_tile(const float* m, int64_t matrix_step, const Finish& finish,
                            int64_t row_step, int64_t pixel_step) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  HWY_ALIGN float half[6 * kEdge * HWY_LANES(float)];
  for (int64_t lane = 0; lane < kBlock; lane += lanes) {
    for (int j = 0; j < 6; ++j) {
      V in[6], out[kEdge];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) in[i] = hn::LoadU(f, m + lane + (i * 6 + j) * matrix_step);
      inverse(f, in, out);
#pragma GCC unroll 4
      for (int i = 0; i < kEdge; ++i) hn::Store(out[i], f, half + (i * 6 + j) * lanes);
    }
    const V b = finish.biases(lane);
    for (int i = 0; i < kEdge; ++i) {
      V in[6], out[kEdge];
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) in[j] = hn::Load(f, half + (i * 6 + j) * lanes);
      inverse(f, in, out);
#pragma GCC unroll 4
      for (int p = 0; p < kEdge; ++p) finish.store(out[p], b, i * row_step + p * pixel_step + lane);
    }
  }
}
/// The same along one axis.
template <int kPoints, int kEdge>
HWY_INLINE void output_line(const float* m, int64_t matrix_step, const Finish& finish,
                            int64_t step) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  for (int64_t lane = 0; lane < kBlock; lane += lanes) {
    V in[kPoints], out[kEdge];
#pragma GCC unroll 8
    for (int i = 0; i < kPoints; ++i) in[i] = hn::LoadU(f, m + lane + i * matrix_step);
    inverse(f, in, out);
    const V b = finish.biases(lane);
#pragma GCC unroll 4
    for (int p = 0; p < kEdge; ++p) finish.store(out[p], b, p * step + lane);
  }
}
/// As input().
void output(int64_t kernel, bool line, const float* m, int64_t matrix_step, const float* bias,
            const float* residual, bool clamp, float lo, float hi, float* y, int64_t row_step,
            int64_t pixel_step) {
  const Finish finish{bias, residual, clamp, lo, hi, y};
  if (!line)
    return kernel == 3 ? output_tile<4>(m, matrix_step, finish, row_step, pixel_step)
                       : output_tile<2>(m, matrix_step, finish, row_step, pixel_step);
  kernel == 3   ? output_line<6, 4>(m, matrix_step, finish, pixel_step)
  : kernel == 5 ? output_line<6, 2>(m, matrix_step, finish, pixel_step)
                : output_line<8, 2>(m, matrix_step, finish, pixel_step);
}

/// G k for one column k: what is even and what is odd in each pair of points apart.
template <class D, typename T = hn::TFromD<D>, class W = hn::Vec<D>>
HWY_INLINE void weights6(D d, const T (&g)[6][3], W k0, W k1, W k2, W (&y)[6]) {
  y[0] = hn::Mul(hn::Set(d, g[0][0]), k0);
  for (int i = 1; i < 5; i += 2) {
    const W even = hn::MulAdd(hn::Set(d, g[i][2]), k2, hn::Mul(hn::Set(d, g[i][0]), k0));
    const W c = hn::Set(d, g[i][1]);
    y[i] = hn::MulAdd(c, k1, even);
    y[i + 1] = hn::NegMulAdd(c, k1, even);
  }
  y[5] = k2;
}

/// Kernels of `inputs` inputs, [input][tap][channel], to u[matrix * matrix_step], [input][channel],
/// one input `step` after the other; `columns` channels, whole vectors. Computed in T.
template <typename T>
void weight_tiles(const float* k, int64_t inputs, int64_t columns, float* u, int64_t step,
                  int64_t matrix_step) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<float, decltype(d)> f;
  using W = hn::Vec<decltype(d)>;
  const auto load = [&](const float* from) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (sizeof(T) == sizeof(float))
      return hn::LoadU(d, from);
    else
      return hn::PromoteTo(d, hn::LoadU(f, from));
  };
  const auto store = [&](W x, float* to) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (sizeof(T) == sizeof(float))
      hn::StoreU(x, d, to);
    else
      hn::StoreU(hn::DemoteTo(f, x), f, to);
  };
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kWeightsAhead = 4;  ///< inputs whose kernels are asked for meanwhile
  const WinogradWeights transform(3);
  T g[6][3];
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 3; ++j) g[i][j] = static_cast<T>(transform.g[i][j]);
  for (int64_t i = 0; i < inputs; ++i)
    for (int64_t c = 0; c < columns; c += lanes) {
      const float* from = k + i * 9 * columns + c;
      float* to = u + i * step + c;
      for (int64_t tap = 0; tap < 9; ++tap)
        __builtin_prefetch(from + (kWeightsAhead * 9 + tap) * columns);
      W half[3][6];
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j)
        weights6(d, g, load(from + j * columns), load(from + (3 + j) * columns),
                 load(from + (6 + j) * columns), half[j]);
#pragma GCC unroll 6
      for (int r = 0; r < 6; ++r) {
        W y[6];
        weights6(d, g, half[0][r], half[1][r], half[2][r], y);
#pragma GCC unroll 6
        for (int j = 0; j < 6; ++j) store(y[j], to + (r * 6 + j) * matrix_step);
      }
    }
}
void weight_tiles_f32(const float* k, int64_t inputs, int64_t columns, float* u,
                      int64_t matrix_step) {
  weight_tiles<float>(k, inputs, columns, u, columns, matrix_step);
}

/// The same in double, of kernels of any size.
void weights_f64(int64_t height, int64_t width, const float* k, int64_t inputs, int64_t columns,
                 float* u, int64_t step, int64_t matrix_step) {
  if (height == 3 && width == 3)
    return weight_tiles<double>(k, inputs, columns, u, step, matrix_step);
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> f;
  const WinogradWeights down(height), across(width);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN double half[7 * 8 * HWY_LANES(double)];  // [tap down][point across]
  for (int64_t i = 0; i < inputs; ++i)
    for (int64_t c = 0; c < columns; c += lanes) {
      const float* from = k + i * height * width * columns + c;
      for (int r = 0; r < down.taps; ++r)
        for (int q = 0; q < across.points; ++q) {
          auto sum = hn::Zero(d);
          for (int t = 0; t < across.taps; ++t)
            sum = hn::MulAdd(hn::Set(d, across.g[q][t]),
                             hn::PromoteTo(d, hn::LoadU(f, from + (r * across.taps + t) * columns)),
                             sum);
          hn::Store(sum, d, half + (r * across.points + q) * lanes);
        }
      for (int p = 0; p < down.points; ++p)
        for (int q = 0; q < across.points; ++q) {
          auto sum = hn::Zero(d);
          for (int r = 0; r < down.taps; ++r)
            sum = hn::MulAdd(hn::Set(d, down.g[p][r]),
                             hn::Load(d, half + (r * across.points + q) * lanes), sum);
          hn::StoreU(hn::DemoteTo(f, sum), f,
                     u + i * step + c + (p * across.points + q) * matrix_step);
        }
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

struct Work {
  const BlockConvPlan& plan;
  const float* x;  ///< blocks of this group of the first image
  int64_t image;   ///< floats from image to image, in and out
  int64_t out_image;
  const float* packed;
  float* y;
  const float* bias;
  const float* residual;
  const Activation& act;
  float* v;       ///< [matrix][block][tile][channel]
  float* m;       ///< the same, of the output blocks at hand
  int64_t tiles;  ///< of a row of v and m
};

/// The first output pixels of an image's tiles, whose neighbours are a dilation apart: those from
/// one pixel of the first dilation's on, then those from the next.
std::vector<BlockConvPlan::Pixel> tiles_of(const BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  const auto first = [&s](int64_t i, int64_t count, int axis) {
    const int64_t dilation = s.dilation[axis], each = count / dilation;
    return i % each * winograd_edge(s, axis) * dilation + i / each;
  };
  std::vector<BlockConvPlan::Pixel> tiles;
  for (int64_t y = 0; y < plan.tiles_y; ++y)
    for (int64_t x = 0; x < plan.tiles_x; ++x)
      tiles.push_back({first(y, plan.tiles_y, 1), first(x, plan.tiles_x, 2)});
  return tiles;
}

/// From one pixel of a tile to the next across, or along its axis.
int64_t pixel_step(const ConvGeometry& s, int64_t down, int64_t across) {
  return s.kernel[2] == 1 ? down : across;
}
/// Of pixels `step` apart from `at` on, the first that is not below `limit`.
int64_t steps_to(int64_t limit, int64_t at, int64_t step) {
  return at >= limit ? 0 : (limit - at + step - 1) / step;
}

/// Input blocks [first, last) of some tiles.
void transform_inputs(const Work& w, int64_t first, int64_t last, const TilesAtHand& some) {
  const ConvGeometry& s = w.plan.shape;
  using Fn = void(int64_t, bool, const float*, int64_t, int64_t, float*, int64_t);
  auto* const fn = TOMBOLO_TARGET(Fn, input).get();
  const int64_t kernel = std::max(s.kernel[1], s.kernel[2]);
  const bool line = winograd_line(s);
  const int64_t height = winograd_points(s.kernel[1]), width = winograd_points(s.kernel[2]);
  const int64_t row = s.in[2] * kBlock, down = s.dilation[1], across = s.dilation[2];
  const int64_t matrix_step = winograd_step(blocks_of(s.in_channels), w.tiles);
  const int64_t each = w.plan.tiles_y * w.plan.tiles_x;
  alignas(64) float room[36 * kBlock];
  for (int64_t block = first; block < last; ++block)
    for (int64_t t = some.begin; t < some.end; ++t) {
      const BlockConvPlan::Pixel at = w.plan.tiles[static_cast<size_t>(t % each)];
      const int64_t y = at.y - s.pad[1], x = at.x - s.pad[2];
      const float* plane = w.x + t / each * w.image + block * s.in[1] * row;
      float* v = w.v + (block * w.tiles + t - some.held) * kBlock;
      if (y >= 0 && x >= 0 && y + (height - 1) * down < s.in[1] &&
          x + (width - 1) * across < s.in[2]) {
        fn(kernel, line, plane + y * row + x * kBlock, down * row,
           pixel_step(s, down * row, across * kBlock), v, matrix_step);
        continue;
      }
      std::memset(room, 0, sizeof room);
      const int64_t left = steps_to(0, x, across), top = steps_to(0, y, down);
      const int64_t right = std::min(width, steps_to(s.in[2], x, across));
      const int64_t bottom = std::min(height, steps_to(s.in[1], y, down));
      for (int64_t i = top; i < bottom; ++i)
        for (int64_t j = left; j < right; ++j)
          std::memcpy(room + (i * width + j) * kBlock,
                      plane + ((y + i * down) * s.in[2] + x + j * across) * kBlock,
                      kBlock * sizeof(float));
      fn(kernel, line, room, width * kBlock, kBlock, v, matrix_step);
    }
}

constexpr int64_t kPart = 2;   ///< input blocks that are summed in one piece
constexpr int64_t kParts = 8;  ///< ... where each of them has a sum of its own

/// Floats of what is needed soon that are asked for with each input: a tile of sixteen registers is
/// through with an input sooner.
int64_t asked_for() { return block_tiles().lanes < kBlock ? kBlock / 2 : kBlock; }

/// One product of `count` tiles: input blocks [from, to) by the panel of `columns` channels whose
/// weights lie at b; to m, of the block of its first channel on. `near` is needed soon: as much of
/// it as asked_for() is asked for with each input, until `end`.
void multiply(const Work& w, int64_t matrix, int64_t from, int64_t to, const float* b,
              int64_t columns, float* m, int64_t count, const float* near, const float* end) {
  const ConvGeometry& s = w.plan.shape;
  const BlockTiles& tiles = block_tiles();
  const int64_t plane = w.tiles * kBlock;
  const bool summed = tiles.summed_rows != 0;
  const int64_t most = summed ? tiles.summed_rows : tiles.max_rows;
  const int64_t cuts = (count + most - 1) / most;
  const int64_t length = w.plan.length, in_block = kBlock / length;
  const int64_t whole = s.in_channels / length, all = (s.in_channels + length - 1) / length;
  BlockTile t{.offsets = w.plan.offsets.data(),
              .length = length,
              .rest_length = s.in_channels % length,
              .step = kBlock,
              .c_block = plane,
              .ahead = asked_for()};
  for (int64_t i = 0; i < cuts; ++i) {
    const int64_t first = count * i / cuts, rows = count * (i + 1) / cuts - first;
    t.jump = rows / 2 * kBlock;
    t.c = m + first * kBlock;
    // Sums of parts are added: what is transformed back magnifies the error of long sums.
    const int64_t step = !summed ? kPart : length < kBlock ? kParts / 4 : kParts;
    for (int64_t part = from; part < to; part += step) {
      const int64_t until = std::min(to, part + step);
      const int64_t last = std::min(all, until * in_block), full = std::min(last, whole);
      t.entries = full - part * in_block;
      t.rest = last - full;
      t.a = w.v + matrix * winograd_step(blocks_of(s.in_channels), w.tiles) + part * plane +
            first * kBlock;
      t.b = b + (part - from) * kBlock * columns;
      t.next = near < end ? near : nullptr;
      near += (until - part) * kBlock * t.ahead;
      t.init = part == 0 ? nullptr : t.c;
      const int vectors = columns > tiles.lanes ? 2 : 1;
      (summed ? tiles.summed : tiles.dense)[rows][vectors](t);
    }
  }
}

/// Panels of output channels.
int64_t panels_of(const ConvGeometry& s) {
  const int64_t width = block_tiles().panel();
  return (blocks_of(s.out_channels) * kBlock + width - 1) / width;
}

/// Products [first, last) of `count` tiles, of each matrix by all panels, with weights that were
/// transformed before.
void multiply_all(const Work& w, int64_t first, int64_t last, int64_t count) {
  const ConvGeometry& s = w.plan.shape;
  const int64_t width = block_tiles().panel(), padded = blocks_of(s.out_channels) * kBlock;
  const int64_t panels = panels_of(s);
  for (int64_t i = first; i < last; ++i) {
    const int64_t matrix = i / panels, channel = i % panels * width;
    const int64_t columns = std::min(width, padded - channel), size = columns * s.in_channels;
    const float* b = w.packed + (matrix * padded + channel) * s.in_channels;
    multiply(w, matrix, 0, blocks_of(s.in_channels), b, columns,
             w.m + matrix * winograd_step(padded / kBlock, w.tiles) +
                 channel / kBlock * w.tiles * kBlock + channel % kBlock,
             count, b + size, b + 2 * size);
  }
}

/// All products of `count` tiles. Threaded, unless `alone`.
void multiply_tiles(const Work& w, int64_t count, bool alone) {
  using Products = BlockConvPlan::Products;
  const int64_t matrices = winograd_matrices(w.plan.shape);
  const Products products = w.plan.products;
  const int64_t pieces = matrices * (products == Products::kFloats ? panels_of(w.plan.shape) : 1);
  const auto some = [&](int64_t first, int64_t last) {
    if (products == Products::kFloats) return multiply_all(w, first, last, count);
    (products == Products::kDigits ? multiply_digits_winograd : multiply_f16_winograd)(
        w.plan, reinterpret_cast<const std::byte*>(w.packed), w.v, w.m, w.tiles, first, last,
        count);
  };
  alone ? some(0, pieces) : parallel(pieces, 1, some);
}

/// Floats between the matrices of a chunk of transformed weights, in cache sets of their own.
int64_t chunk_step(const BlockConvPlan& plan) {
  return plan.chunk * kBlock * block_tiles().panel() + 16;
}
int64_t group_panels(const BlockConvPlan& plan) { return plan.band / block_tiles().panel(); }

/// Channels [first, last) of the output of `count` tiles by 3 x 3: weights are transformed as they
/// are needed, some input blocks at a time, and stay in the second cache with the sums.
void multiply_group(const Work& w, int64_t first, int64_t last, int64_t count, float* room) {
  const BlockConvPlan& plan = w.plan;
  const ConvGeometry& s = plan.shape;
  auto* const transform =
      TOMBOLO_TARGET(void(const float*, int64_t, int64_t, float*, int64_t), weight_tiles_f32).get();
  const int64_t width = block_tiles().panel(), blocks = blocks_of(s.in_channels);
  const int64_t plane = w.tiles * kBlock, step = chunk_step(plan);
  const int64_t tiles = block_tiles().max_rows, padded = blocks_of(s.out_channels) * kBlock;
  for (int64_t from = 0; from < blocks; from += plan.chunk) {
    const int64_t to = std::min(blocks, from + plan.chunk), after = to < blocks ? to : 0;
    const int64_t inputs = std::min(s.in_channels, to * kBlock) - from * kBlock;
    for (int64_t channel = first; channel < last; channel += width) {
      const int64_t columns = std::min(width, last - channel);
      transform(w.packed + 9 * (channel * s.in_channels + from * kBlock * columns), inputs, columns,
                room + (channel - first) / width * kMatrices * step, step);
    }
    // Meanwhile the next chunk comes nearer: images with the first panel, weights with the others.
    const int64_t asked = (count + tiles - 1) / tiles * (to - from) * kBlock * asked_for();
    for (int64_t matrix = 0; matrix < kMatrices; ++matrix) {
      const float* v = w.v + matrix * winograd_step(blocks, w.tiles) + after * plane;
      for (int64_t channel = first; channel < last; channel += width) {
        const int64_t columns = std::min(width, last - channel);
        const float *near = v, *end = v + (to - from) * plane;
        if (channel != first) {
          // The second panel asks for the weights of the first one afterwards.
          const bool other = channel == first + width && matrix >= kMatrices / 2;
          const int64_t of = (other ? first : channel) + (after == 0 ? last - first : 0);
          near = w.packed + 9 * (of * s.in_channels + after * kBlock * columns);
          end = of < padded ? near + 9 * (to - from) * kBlock * columns : near;
          near += (matrix - (other ? kMatrices / 2 : 0)) * asked;
        }
        multiply(w, matrix, from, to,
                 room + ((channel - first) / width * kMatrices + matrix) * step, columns,
                 w.m + matrix * winograd_step((last - first) / kBlock, w.tiles) +
                     (channel - first) / kBlock * plane + (channel - first) % kBlock,
                 count, near, end);
      }
    }
  }
}

/// Output blocks [first, last) of some tiles; m holds blocks [held, held_end).
void transform_outputs(const Work& w, int64_t held, int64_t held_end, int64_t first, int64_t last,
                       const TilesAtHand& some) {
  const ConvGeometry& s = w.plan.shape;
  using Fn = void(int64_t, bool, const float*, int64_t, const float*, const float*, bool, float,
                  float, float*, int64_t, int64_t);
  auto* const fn = TOMBOLO_TARGET(Fn, output).get();
  const int64_t edge_y = winograd_edge(s, 1), edge_x = winograd_edge(s, 2);
  const int64_t row = s.out[2] * kBlock, down = s.dilation[1] * row,
                across = s.dilation[2] * kBlock;
  const int64_t matrix_step = winograd_step(held_end - held, w.tiles);
  const int64_t each = w.plan.tiles_y * w.plan.tiles_x;
  const bool clamp = w.act.kind == Activation::Kind::kClamp;
  alignas(64) float room[16 * kBlock], rest[16 * kBlock];
  for (int64_t block = first; block < last; ++block)
    for (int64_t t = some.begin; t < some.end; ++t) {
      const BlockConvPlan::Pixel at = w.plan.tiles[static_cast<size_t>(t % each)];
      const int64_t to =
          t / each * w.out_image + block * s.out[1] * row + at.y * row + at.x * kBlock;
      const float* m = w.m + ((block - held) * w.tiles + t - some.held) * kBlock;
      const float* bias = w.bias != nullptr ? w.bias + block * kBlock : nullptr;
      const float* residual = w.residual != nullptr ? w.residual + to : nullptr;
      const int64_t height = std::min(edge_y, steps_to(s.out[1], at.y, s.dilation[1]));
      const int64_t width = std::min(edge_x, steps_to(s.out[2], at.x, s.dilation[2]));
      // Other activations take pixels that lie side by side.
      const bool whole = height == edge_y && width == edge_x && (w.act.tiled() || across == kBlock);
      const auto each_pixel = [&](auto&& move) {
        for (int64_t i = 0; i < height; ++i)
          for (int64_t j = 0; j < width; ++j)
            move((i * edge_x + j) * kBlock, to + i * down + j * across);
      };
      constexpr size_t kPixel = kBlock * sizeof(float);
      if (!whole && residual != nullptr) {
        each_pixel([&](int64_t here, int64_t there) {
          std::memcpy(rest + here, w.residual + there, kPixel);
        });
        residual = rest;
      }
      float* out = whole ? w.y + to : room;
      const int64_t step = whole ? down : edge_x * kBlock;
      fn(std::max(s.kernel[1], s.kernel[2]), winograd_line(s), m, matrix_step, bias, residual,
         clamp, w.act.alpha, w.act.beta, out, step, pixel_step(s, step, whole ? across : kBlock));
      if (!w.act.tiled())
        for (int64_t i = 0; i < edge_y; ++i)
          apply_activation(w.act, out + i * step, edge_x * kBlock);
      if (!whole)
        each_pixel(
            [&](int64_t here, int64_t there) { std::memcpy(w.y + there, room + here, kPixel); });
    }
}

constexpr int64_t kFewestTiles = 12;  ///< that repay the reading of weights, of many threads

int64_t tile_floats(const ConvGeometry& s) {
  return winograd_matrices(s) * kBlock * (blocks_of(s.in_channels) + blocks_of(s.out_channels));
}
/// Of `count` tiles, transformed.
int64_t held_floats(const ConvGeometry& s, int64_t channels, int64_t count) {
  return winograd_matrices(s) * winograd_step(blocks_of(channels), count);
}

constexpr int64_t kTilesOfAPiece = 8;  ///< that use most registers of a product

/// Products of some tiles that threads do not share: what they would have to fetch from one another
/// takes longer.
bool few_products(const ConvGeometry& s, int64_t tiles) {
  return winograd_matrices(s) * tiles * s.in_channels * blocks_of(s.out_channels) * kBlock <
         2 * kLeastProducts;
}

/// Whether every thread works on blocks of its own, from image to output: pays while the weights
/// stay in its second cache beside them. Groups one after the other would have threads wait for
/// one another three times in each.
bool private_blocks(const BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  const int64_t tiles = s.batch * plan.tiles_y * plan.tiles_x, threads = thread_count();
  const int64_t products = s.in_channels * s.out_channels;
  if (products > 64 * 128) return false;
  if (groups_apart(s) || tiles >= 2 * 28 * threads) return true;
  if (threads == 1) return false;
  // Layers of some microseconds: a few pieces, of some threads, wait for one another once.
  if (tiles >= 2 * kTilesOfAPiece && few_products(s, tiles)) return true;
  if (threads <= kFewThreads) return tiles >= kTilesOfAPiece * threads && products <= 64 * 64;
  // Of many threads each fetches all weights, or all of them what the others have transformed.
  return tiles >= kFewestTiles * threads &&
         products * threads <= 2 * tiles * (s.in_channels + s.out_channels);
}

}  // namespace

void plan_block_winograd(BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  plan.tiles_y = winograd_tiles(s, 1);
  plan.tiles_x = winograd_tiles(s, 2);
  plan.tiles = tiles_of(plan);
  const int64_t tiles = s.batch * plan.tiles_y * plan.tiles_x;
  const bool own = plan.own_blocks = private_blocks(plan);
  const int64_t rows = block_tiles().max_rows;
  const int64_t room = own ? 200'000 : 4'000'000;
  plan.tile_block = std::clamp<int64_t>(room / tile_floats(s) / rows * rows, 2 * rows, 64 * rows);
  // Blocks of one size, as many for each thread.
  int64_t blocks = (tiles + plan.tile_block - 1) / plan.tile_block;
  const int64_t threads = thread_count();
  if (own && !groups_apart(s)) {
    if (threads > kFewThreads)
      blocks = std::max(blocks, std::min<int64_t>(3, tiles / (kFewestTiles * threads)) * threads);
    const int64_t pieces = std::clamp<int64_t>(tiles / kTilesOfAPiece, 1, threads);
    blocks = (blocks + pieces - 1) / pieces * pieces;
  }
  plan.tile_block = (tiles + blocks - 1) / blocks;
  // Few channels are summed by eights: their sums are the larger part of a layer's error, and
  // networks of them (super-resolution) have nothing that errs less.
  constexpr int64_t kFew = 64;
  const bool few = s.in_channels <= kFew && s.out_channels <= kFew;
  plan.length = few && block_tiles().summed_rows != 0 ? kBlock / 2 : kBlock;
  for (int64_t c = 0; c < s.in_channels; c += plan.length)
    plan.offsets.push_back(c / kBlock * plan.tile_block * kBlock + c % kBlock);
  // Few tiles and many weights: to fetch transformed ones, four times as many, takes longer than to
  // transform them again. Below this size they stay in a shared cache from one run to the next, and
  // transforming 256 x 256 of them at 14 x 14 made a layer 1.4 times slower.
  constexpr int64_t kFar = 16 << 20;
  const int64_t bytes =
      kMatrices * s.in_channels * s.out_channels * static_cast<int64_t>(sizeof(float));
  plan.on_the_way = plan.products == BlockConvPlan::Products::kFloats && !own &&
                    winograd_edge(s, 1) == 4 && winograd_edge(s, 2) == 4 && tiles <= 112 &&
                    bytes > kFar;
  const int64_t matrices = plan.on_the_way ? s.taps() : winograd_matrices(s);
  plan.weight_floats =
      static_cast<size_t>(s.groups * matrices * panel_floats(s.in_channels, s.out_channels));
  const int64_t inputs = held_floats(s, s.in_channels, plan.tile_block);
  plan.scratch_floats = 64;
  if (!own)
    plan.scratch_floats +=
        static_cast<size_t>(inputs + held_floats(s, s.out_channels, plan.tile_block));
  if (!plan.on_the_way) return;
  plan.scratch_floats = static_cast<size_t>(inputs) + 64;
  // Transformed weights, sums, and what is read of the images take three quarters of a second cache
  // of which near_bytes() is half. Every thread has some groups of channels.
  const int64_t padded = blocks_of(s.out_channels) * kBlock;
  const int64_t floats = near_bytes() * 3 / 2 / 4;
  plan.band = std::max(block_tiles().panel(), kBlock);
  while (plan.band * 2 <= padded && plan.band < 128 &&
         kMatrices * plan.band * 2 * plan.tile_block <= floats / 2)
    plan.band *= 2;
  const int64_t chunk =
      (floats / kMatrices - plan.band * plan.tile_block) / (plan.band + plan.tile_block) / kBlock;
  plan.chunk = std::min(std::max<int64_t>(chunk, 2), blocks_of(s.in_channels));
  // Sums are the same for any number of threads.
  while (plan.band > std::max(block_tiles().panel(), kBlock) &&
         plan.band * 2 * thread_count() > padded)
    plan.band /= 2;
}

void winograd_weights(const std::array<int64_t, 2>& kernel, const float* kernels, int64_t inputs,
                      int64_t columns, float* u, int64_t step, int64_t matrix_step) {
  using Fn = void(int64_t, int64_t, const float*, int64_t, int64_t, float*, int64_t, int64_t);
  TOMBOLO_TARGET(Fn, weights_f64)
  (kernel[0], kernel[1], kernels, inputs, columns, u, step, matrix_step);
}

void transform_panel(const ConvGeometry& s, const float* w, int64_t first, int64_t columns,
                     float* room, float* u) {
  const int64_t inputs = s.in_channels, taps = s.taps();
  const float* from = w + first * inputs * taps;
  pack_panel(
      inputs * taps, columns, s.out_channels - first,
      [&](int64_t o, int64_t i) { return from[o * inputs * taps + i]; }, room);
  winograd_weights({s.kernel[1], s.kernel[2]}, room, inputs, columns, u, columns, inputs * columns);
}

double winograd_growth(const std::array<int64_t, 2>& kernel, int64_t matrix) {
  const WinogradWeights down(kernel[0]), across(kernel[1]);
  const auto sum = [](const WinogradWeights& w, int64_t point) {
    double total = 0;
    for (int t = 0; t < w.taps; ++t) total += std::abs(w.g[point][t]);
    return total;
  };
  return sum(down, matrix / across.points) * sum(across, matrix % across.points);
}

void pack_block_winograd(const BlockConvPlan& plan, const float* w, float* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t inputs = s.in_channels, width = block_tiles().panel(), taps = s.taps();
  const int64_t padded = blocks_of(s.out_channels) * kBlock, panels = (padded + width - 1) / width;
  const int64_t matrix = padded * inputs;
  constexpr int64_t kAtOnce = 16;  ///< inputs, whose kernels stay in the first cache
  parallel(s.groups * panels, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> room(plan.on_the_way ? 0 : static_cast<size_t>(kAtOnce * taps * width));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t group = task / panels, first = task % panels * width;
      const int64_t columns = std::min(width, padded - first);
      const float* from = w + (group * s.out_channels + first) * inputs * taps;
      // [input][tap][channel]
      const auto kernels = [&](int64_t input, int64_t count, float* to) {
        pack_panel(
            count * taps, columns, s.out_channels - first,
            [&](int64_t o, int64_t i) { return from[(o * inputs + input) * taps + i]; }, to);
      };
      if (plan.on_the_way) {  // transformed in every run; see plan_block_winograd
        kernels(0, inputs, packed + (group * padded + first) * inputs * taps);
        continue;
      }
      float* out = packed + group * winograd_matrices(s) * matrix + first * inputs;
      for (int64_t i = 0; i < inputs; i += kAtOnce) {
        const int64_t count = std::min(kAtOnce, inputs - i);
        kernels(i, count, room.data());
        winograd_weights({s.kernel[1], s.kernel[2]}, room.data(), count, columns, out + i * columns,
                         columns, matrix);
      }
    }
  });
}

void run_block_winograd(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                        const ConvEpilogue& epilogue, float* scratch) {
  const ConvGeometry& s = plan.shape;
  const int64_t tiles = s.batch * plan.tiles_y * plan.tiles_x, block = plan.tile_block;
  const int64_t blocks = (tiles + block - 1) / block;
  const int64_t in_blocks = blocks_of(s.in_channels), out_blocks = blocks_of(s.out_channels);
  const int64_t matrices = winograd_matrices(s);
  const int64_t v_floats = held_floats(s, s.in_channels, block);
  const int64_t padded = out_blocks * kBlock;
  const int64_t in_plane = s.in_plane() * kBlock, out_plane = s.out_plane() * kBlock;
  const auto work_of = [&](int64_t group) {
    const int64_t to = group * out_blocks * out_plane;
    return Work{plan,
                x + group * in_blocks * in_plane,
                blocks_of(s.groups * s.in_channels) * in_plane,
                blocks_of(s.groups * s.out_channels) * out_plane,
                packed + group * (plan.on_the_way ? s.taps() : matrices) * padded * s.in_channels,
                y + to,
                epilogue.bias != nullptr ? epilogue.bias + group * padded : nullptr,
                epilogue.residual != nullptr ? epilogue.residual + to : nullptr,
                epilogue.activation,
                nullptr,
                nullptr,
                block};
  };
  if (plan.own_blocks) {
    parallel(blocks * s.groups, 1, [&](int64_t first, int64_t last) {
      const int64_t m_floats = held_floats(s, s.out_channels, block);
      float* const v = thread_floats(2, static_cast<size_t>(v_floats + m_floats + 64));
      for (int64_t task = first; task < last; ++task) {
        Work own = work_of(task % s.groups);
        own.v = v;
        own.m = v + v_floats;
        const int64_t begin = task / s.groups * block, end = std::min(tiles, begin + block);
        transform_inputs(own, 0, in_blocks, {begin, begin, end});
        multiply_tiles(own, end - begin, true);
        transform_outputs(own, 0, out_blocks, 0, out_blocks, {begin, begin, end});
      }
    });
    return;
  }
  for (int64_t group = 0; group < s.groups; ++group) {
    Work work = work_of(group);
    work.v = scratch;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t begin = b * block, end = std::min(tiles, begin + block);
      const bool alone = few_products(s, end - begin);
      share_transforms(in_blocks, begin, end, alone,
                       [&](int64_t block_at, const TilesAtHand& some) {
                         transform_inputs(work, block_at, block_at + 1, some);
                       });
      if (!plan.on_the_way) {
        work.m = scratch + v_floats;
        multiply_tiles(work, end - begin, alone);
        share_transforms(out_blocks, begin, end, alone,
                         [&](int64_t block_at, const TilesAtHand& some) {
                           transform_outputs(work, 0, out_blocks, block_at, block_at + 1, some);
                         });
        continue;
      }
      const int64_t groups = (padded + plan.band - 1) / plan.band;
      parallel(groups, alone ? groups : 1, [&](int64_t first, int64_t last) {
        Work own = work;
        const int64_t m_floats = kMatrices * winograd_step(plan.band / kBlock, block);
        own.m = thread_floats(
            2,
            static_cast<size_t>(m_floats + group_panels(plan) * kMatrices * chunk_step(plan) + 64));
        for (int64_t g = first; g < last; ++g) {
          const int64_t from = g * plan.band, until = std::min(padded, from + plan.band);
          multiply_group(own, from, until, end - begin, own.m + m_floats);
          transform_outputs(own, from / kBlock, until / kBlock, from / kBlock, until / kBlock,
                            {begin, begin, end});
        }
      });
    }
  }
}

}  // namespace tombolo
#endif
