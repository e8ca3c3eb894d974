// Winograd's minimal filtering F(4x4, 3x3) of bytes, exact: with the points 0, 1, -1, 2, -2 and
// infinity all transforms are of integers once each point's row of the weights is scaled.
//
//   inputs   10 times 10 times 255 at most, also less their zero point: 16 bits
//   weights  rows 6 0 0 | -2 -2 -2 | -2 2 -2 | 1 2 4 | 1 -2 4 | 0 0 12: 144 times 128 at most
//   results  24 24 = 64 * 9 times the sum for the first pixel of a tile, 8 or 4 times 4 * 9 for
//   others
//
// Sums of 32 bits may wrap on the way: what counts is the result modulo 2^32, from which nine goes
// by its inverse and the power of two by a shift, as long as the convolution itself stays below
// 2^25. Weights stay bytes in memory; they are transformed in each run, a panel at a time, which
// costs less than to fetch four times as many.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quant/qconv_winograd.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/cpu.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/quant/qconv_last.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using I16 = hn::ScalableTag<int16_t>;
using I32 = hn::ScalableTag<int32_t>;
using V16 = hn::Vec<I16>;
using V32 = hn::Vec<I32>;

int64_t panel() { return static_cast<int64_t>(hn::Lanes(I16())); }

HWY_INLINE void inputs6(V16 d0, V16 d1, V16 d2, V16 d3, V16 d4, V16 d5, V16 (&y)[6]) {
  const V16 even = hn::Sub(d4, d2), odd = hn::ShiftLeft<1>(hn::Sub(d3, d1));
  const V16 p = hn::Sub(d4, hn::ShiftLeft<2>(d2)), q = hn::Sub(d3, hn::ShiftLeft<2>(d1));
  y[0] = hn::Add(hn::ShiftLeft<2>(hn::Sub(d0, d2)), even);
  y[1] = hn::Add(p, q);
  y[2] = hn::Sub(p, q);
  y[3] = hn::Add(even, odd);
  y[4] = hn::Sub(even, odd);
  y[5] = hn::Sub(hn::Sub(d5, d3), hn::ShiftLeft<1>(odd));
}

HWY_INLINE void weights6(V16 g0, V16 g1, V16 g2, V16 (&y)[6]) {
  const I16 d;
  const V16 near = hn::ShiftLeft<1>(hn::Add(g0, g2)), far = hn::Add(g0, hn::ShiftLeft<2>(g2));
  const V16 odd = hn::ShiftLeft<1>(g1);
  y[0] = hn::Mul(hn::Set(d, 6), g0);
  y[1] = hn::Neg(hn::Add(near, odd));
  y[2] = hn::Sub(odd, near);
  y[3] = hn::Add(far, odd);
  y[4] = hn::Sub(far, odd);
  y[5] = hn::Mul(hn::Set(d, 12), g2);
}

HWY_INLINE void results4(V32 m0, V32 m1, V32 m2, V32 m3, V32 m4, V32 m5, V32 (&y)[4]) {
  const V32 near = hn::Add(m1, m2), far = hn::Add(m3, m4);
  const V32 near_odd = hn::Sub(m1, m2), far_odd = hn::Sub(m3, m4);
  y[0] = hn::Add(hn::Add(m0, far), hn::ShiftLeft<1>(near));
  y[1] = hn::Add(near_odd, far_odd);
  y[2] = hn::Add(near, hn::ShiftLeft<1>(far));
  y[3] = hn::Add(hn::Add(near_odd, m5), hn::ShiftLeft<2>(far_odd));
}

/// `origin`: what the zero point becomes in the one matrix whose sums see all pixels alike.
template <typename T>
HWY_INLINE void input_channels(const uint8_t* const* pixels, int64_t c, int64_t left, V16 origin,
                               int16_t* v, int64_t step) {
  const I16 d;
  const hn::Rebind<T, I16> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN int16_t half[36 * HWY_LANES(int16_t)];
  const auto load = [&](const uint8_t* p) HWY_ATTR {
    return hn::PromoteTo(d, load_n(bytes, reinterpret_cast<const T*>(p + c), left));
  };
  for (int i = 0; i < 6; ++i) {
    const uint8_t* const* row = pixels + i * 6;
    V16 y[6];
    inputs6(load(row[0]), load(row[1]), load(row[2]), load(row[3]), load(row[4]), load(row[5]), y);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) hn::Store(y[j], d, half + (i * 6 + j) * lanes);
  }
  for (int j = 0; j < 6; ++j) {
    const auto at = [&](int i) HWY_ATTR { return hn::Load(d, half + (i * 6 + j) * lanes); };
    V16 y[6];
    inputs6(at(0), at(1), at(2), at(3), at(4), at(5), y);
    if (j == 1) y[1] = hn::Sub(y[1], origin);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) hn::StoreU(y[i], d, v + (i * 6 + j) * step);
  }
}

/// 6 x 6 pixels of `channels` bytes to v[matrix * step], channels filled up to whole vectors.
void input_tile(const uint8_t* const* pixels, int64_t channels, bool x_signed, int32_t zero,
                int16_t* v, int64_t step) {
  const I16 d;
  // Of the other points the weights of six pixels in a line sum to 0, of this one to -6.
  const V16 origin = hn::Set(d, static_cast<int16_t>(36 * zero));
  for (int64_t c = 0; c < channels; c += panel()) {
    if (x_signed)
      input_channels<int8_t>(pixels, c, channels - c, origin, v + c, step);
    else
      input_channels<uint8_t>(pixels, c, channels - c, origin, v + c, step);
  }
}

/// Pairs of channels of a panel, [pair][tap][column][2], to u[matrix * step], [pair][column][2].
void weight_panel(const std::byte* packed, int64_t pairs, int16_t* u, int64_t step) {
  const I16 d;
  const hn::Rebind<int8_t, I16> bytes;
  const int64_t lanes = panel(), row = 2 * lanes;
  const auto* w = reinterpret_cast<const int8_t*>(packed);
  // So much is done with each line that a processor does not see those after it in time.
  constexpr int64_t kAhead = 4096;
  for (int64_t i = 0; i < pairs; ++i, w += 9 * row, u += row) {
    for (int64_t line = 0; line < 9 * row; line += 64) __builtin_prefetch(w + kAhead + line);
    for (int64_t at = 0; at < row; at += lanes) {
      const auto tap = [&](int t) HWY_ATTR {
        return hn::PromoteTo(d, hn::LoadU(bytes, w + t * row + at));
      };
      V16 half[3][6];
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) weights6(tap(j), tap(3 + j), tap(6 + j), half[j]);
#pragma GCC unroll 6
      for (int r = 0; r < 6; ++r) {
        V16 y[6];
        weights6(half[0][r], half[1][r], half[2][r], y);
#pragma GCC unroll 6
        for (int j = 0; j < 6; ++j) hn::StoreU(y[j], d, u + (r * 6 + j) * step + at);
      }
    }
  }
}

/// m[matrix * step] of a panel's columns to the sums of 4 x 4 pixels, [row * line][pixel][column].
void output_tile(const int32_t* m, int64_t step, int32_t* sums, int64_t line) {
  const I32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN int32_t half[24 * HWY_LANES(int32_t)];
  const V32 ninth = hn::Set(d, 954437177);  // 9 times this is 1 modulo 2^32
  for (int64_t c = 0; c < panel(); c += lanes) {
    for (int j = 0; j < 6; ++j) {
      const auto at = [&](int i) HWY_ATTR { return hn::LoadU(d, m + (i * 6 + j) * step + c); };
      V32 y[4];
      results4(at(0), at(1), at(2), at(3), at(4), at(5), y);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) hn::Store(y[i], d, half + (i * 6 + j) * lanes);
    }
    for (int i = 0; i < 4; ++i) {
      const auto at = [&](int j) HWY_ATTR { return hn::Load(d, half + (i * 6 + j) * lanes); };
      V32 y[4];
      results4(at(0), at(1), at(2), at(3), at(4), at(5), y);
      int32_t* to = sums + i * line + c;
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const V32 scaled = hn::Mul(y[j], ninth);
        const V32 sum = j == 0 ? hn::ShiftRight<5>(scaled) : hn::ShiftRight<4>(scaled);
        hn::StoreU(i == 0 ? hn::ShiftRight<1>(sum) : sum, d, to + j * panel());
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

constexpr int64_t kPoints = 36;
constexpr int64_t kFewTiles = 32, kSomeTiles = 64;  ///< of a block of products, at most
constexpr int64_t kNumbers = 16384;  ///< channels times columns of transformed weights at a time
/// Numbers between matrices, which otherwise lie powers of two apart, in one set of the first
/// cache.
constexpr int64_t kGap = 32;

int64_t panel_width() { return TOMBOLO_TARGET(int64_t(), panel)(); }
int64_t filled(int64_t channels) {
  const int64_t width = panel_width();
  return (channels + width - 1) / width * width;
}
int64_t panel_bytes(const ConvGeometry& g) {
  return filled(g.in_channels) / 2 * 9 * 2 * panel_width();
}
int64_t tiles_across(const ConvGeometry& g) { return (g.out[2] + 3) / 4; }
int64_t tiles_of(const ConvGeometry& g) { return (g.out[1] + 3) / 4 * tiles_across(g); }

/// Tiles of a band: what is made of its inputs stays in the nearer caches until all panels have met
/// it, and the weights, which each band transforms anew, are little beside it.
int64_t tiles_of_band(const ConvGeometry& g) {
  constexpr int64_t kLeast = 256;
  const int64_t tiles = tiles_of(g), each = kPoints * filled(g.in_channels) * 2;
  const int64_t most = std::max(kLeast, 4 * near_bytes() / each), bands = (tiles + most - 1) / most;
  return (tiles + bands - 1) / bands;
}

int64_t matrix_step(const ConvGeometry& g) {
  return tiles_of_band(g) * filled(g.in_channels) + kGap;
}

struct Work {
  const ConvGeometry& g;
  const int16_t* v;  ///< [matrix][tile][channel], of the tiles of a band, from `band` on
  int64_t band;
  const std::byte* packed;
  const QFinish& finish;
};

/// Tiles [begin, end) to places from `v` on.
void transform_inputs(const QConvPlan& plan, const uint8_t* x, int32_t zero, const uint8_t* padding,
                      int64_t begin, int64_t end, int16_t* v) {
  const ConvGeometry& g = plan.shape;
  using Fn = void(const uint8_t* const*, int64_t, bool, int32_t, int16_t*, int64_t);
  Fn* const fn = TOMBOLO_TARGET(Fn, input_tile).get();
  const int64_t channels = g.in_channels, depth = filled(channels), across = tiles_across(g);
  const int64_t step = matrix_step(g);
  const uint8_t* pixels[kPoints];
  for (int64_t t = begin; t < end; ++t) {
    const int64_t top = t / across * 4 - g.pad[1], left = t % across * 4 - g.pad[2];
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t j = 0; j < 6; ++j) {
        const int64_t y = top + i, c = left + j;
        const bool inside = y >= 0 && y < g.in[1] && c >= 0 && c < g.in[2];
        pixels[i * 6 + j] = inside ? x + (y * g.in[2] + c) * channels : padding;
      }
    fn(pixels, channels, plan.x_signed, zero, v + (t - begin) * depth, step);
  }
}

/// Tiles [begin, end) of the panel's columns.
void multiply(const Work& w, int64_t column_panel, int64_t begin, int64_t end) {
  const ConvGeometry& g = w.g;
  const QTiles& tiles = q_pair_tiles();
  using Weights = void(const std::byte*, int64_t, int16_t*, int64_t);
  using Results = void(const int32_t*, int64_t, int32_t*, int64_t);
  Weights* const weights = TOMBOLO_TARGET(Weights, weight_panel).get();
  Results* const results = TOMBOLO_TARGET(Results, output_tile).get();
  const int64_t width = panel_width(), depth = filled(g.in_channels), across = tiles_across(g);
  const int64_t some = std::min(depth, kNumbers / width);  // channels at a time
  const int64_t most = depth > some ? kSomeTiles : kFewTiles;
  const int64_t block = most / tiles.max_rows * tiles.max_rows;  // no products of fewer rows
  const std::byte* from = w.packed + column_panel * panel_bytes(g);
  const int64_t u_step = some * width + kGap, matrix = matrix_step(g);
  auto* u = reinterpret_cast<int16_t*>(thread_floats(1, static_cast<size_t>(kPoints * u_step / 2)));
  auto* m = reinterpret_cast<int32_t*>(thread_floats(
      2, static_cast<size_t>(kPoints * (std::min(block, end - begin) * width + kGap))));
  constexpr int64_t kSide = 4;  // tiles side by side whose sums are finished at once
  alignas(64) int32_t sums[kSide * 16 * kMaxQPanel];
  const int64_t line = kSide * 4 * width;
  for (int64_t first = begin; first < end; first += block) {
    const int64_t count = std::min(block, end - first), m_step = count * width + kGap;
    for (int64_t c = 0; c < depth; c += some) {
      const int64_t pairs = std::min(some, depth - c) / 2;
      if (depth > some || first == begin) weights(from + c * 9 * width, pairs, u, u_step);
      for (int64_t p = 0; p < kPoints; ++p) {
        const int64_t rows = tiles.tile_rows(count);
        for (int64_t t = 0; t < count; t += rows) {
          const int64_t height = std::min(rows, count - t);
          QTile tile{reinterpret_cast<const std::byte*>(w.v + p * matrix +
                                                        (first - w.band + t) * depth + c),
                     depth * 2,
                     reinterpret_cast<const std::byte*>(u + p * u_step),
                     pairs,
                     m + p * m_step + t * width,
                     width};
          tile.add = c > 0;
          tiles.signed_rows[height](tile);
        }
      }
    }
    const int64_t column = column_panel * width, columns = std::min(width, g.out_channels - column);
    for (int64_t t = 0, side = 0; t < count; t += side) {
      const int64_t y = (first + t) / across * 4, x = (first + t) % across;
      side = std::min({kSide, count - t, across - x});
      for (int64_t i = 0; i < side; ++i)
        results(m + (t + i) * width, m_step, sums + i * 4 * width, line);
      for (int64_t i = 0; i < std::min<int64_t>(4, g.out[1] - y); ++i)
        q_finish(w.finish, sums + i * line, width, (y + i) * g.out[2] + 4 * x,
                 std::min<int64_t>(4 * side, g.out[2] - 4 * x), column, columns);
    }
  }
}

/// Whether it takes less time than the 27 units of products that a pixel takes of bytes, for each
/// input times output.
bool pays(const ConvGeometry& g) {
  // Of a unit of work of a tile, of what its inputs and its outputs cost, and the weights, as
  // measured: with VNNI the product of bytes takes half as long and the transforms no less. Intel's
  // processors add no faster than they multiply bytes, others (Zen 5) twice as fast: what the
  // transforms cost there is twice as much beside products.
  struct Costs {
    double unit, inputs, outputs, weights;
  };
  const Costs costs = !has_vnni() && !has_avx_vnni() ? Costs{3, 360, 160, 80}
                      : cpu_features().intel         ? Costs{12, 360, 160, 80}
                                                     : Costs{7, 360, 80, 120};
  constexpr int64_t kLeastTiles = 6;  // products of fewer rows wait for their own sums
  const auto inputs = static_cast<double>(g.in_channels),
             outputs = static_cast<double>(g.out_channels);
  const auto depth = static_cast<double>(filled(g.in_channels));
  const double tile = kPoints + costs.outputs / outputs + costs.inputs / depth;
  const auto tiles = static_cast<double>(std::max(tiles_of(g), kLeastTiles));
  return costs.unit * (tiles * tile + costs.weights) * depth / inputs <
         static_cast<double>(27 * g.out_plane());
}

}  // namespace

bool q_winograd_takes(const ConvGeometry& g, const uint8_t* w, bool flip) {
  if (w == nullptr || q_use_amx(g.batch * g.out_plane()) || q_pair_tiles().panel != panel_width())
    return false;
  if (g.groups != 1 || g.kernel[0] != 1 || g.kernel[1] != 3 || g.kernel[2] != 3 ||
      g.stride[1] != 1 || g.stride[2] != 1 || g.dilation[1] != 1 || g.dilation[2] != 1)
    return false;
  if (g.in_channels < 16 || g.out_channels < 16 || !pays(g)) return false;
  const int64_t depth = g.depth();
  for (int64_t m = 0; m < g.out_channels; ++m) {
    int64_t sum = 0;
    for (int64_t i = 0; i < depth; ++i)
      sum += std::abs(static_cast<int8_t>(flip ? w[m * depth + i] ^ 0x80 : w[m * depth + i]));
    if (sum * 255 >= int64_t{1} << 25) return false;
  }
  return true;
}

size_t q_winograd_weight_bytes(const ConvGeometry& g) {
  const int64_t width = panel_width();
  return static_cast<size_t>((g.out_channels + width - 1) / width * panel_bytes(g));
}

size_t q_winograd_image_bytes(const ConvGeometry& g) {
  const int64_t depth = filled(g.in_channels);
  return static_cast<size_t>(kPoints * matrix_step(g) * 2 + depth);
}

void q_winograd_pack(const ConvGeometry& g, const int8_t* w, std::byte* packed) {
  const int64_t width = panel_width(), inputs = g.in_channels;
  const int64_t panels = (g.out_channels + width - 1) / width;
  parallel(panels, std::max<int64_t>(1, 16384 / (width * inputs)), [&](int64_t begin, int64_t end) {
    for (int64_t m = begin * width; m < std::min(g.out_channels, end * width); ++m)
      for (int64_t t = 0; t < 9; ++t) {
        std::byte* to = packed + m / width * panel_bytes(g) + t * 2 * width + m % width * 2;
        const int8_t* from = w + (m * 9 + t) * inputs;
        for (int64_t c = 0; c < inputs; ++c)
          to[c / 2 * 18 * width + c % 2] = static_cast<std::byte>(from[c]);
      }
  });
}

void q_winograd_run(const QConvPlan& plan, const uint8_t* x, uint8_t zero, const std::byte* packed,
                    const QFinish& finish, std::byte* image) {
  const ConvGeometry& g = plan.shape;
  const int64_t tiles = tiles_of(g), depth = filled(g.in_channels);
  const int64_t threads = loop_threads();
  auto* v = reinterpret_cast<int16_t*>(image);
  auto* padding = reinterpret_cast<uint8_t*>(v + kPoints * matrix_step(g));
  std::memset(padding, zero, static_cast<size_t>(depth));
  const int32_t origin = plan.x_signed ? static_cast<int8_t>(zero) : zero;
  const int64_t panels = (g.out_channels + panel_width() - 1) / panel_width();
  const int64_t band = tiles_of_band(g);
  for (int64_t first = 0; first < tiles; first += band) {
    const int64_t count = std::min(band, tiles - first);
    const auto transform = [&](int64_t begin, int64_t end, int16_t* to) {
      transform_inputs(plan, x, origin, padding, first + begin, first + end, to + begin * depth);
    };
    const auto product = [&](const int16_t* from, int64_t panel, int64_t begin, int64_t end) {
      multiply({g, from, first, packed, finish}, panel, first + begin, first + end);
    };
    // Threads share tiles where these are many, as each has to transform the weights it uses.
    const int64_t least = panels < threads ? 8 : 24;
    const int64_t parts = count >= least * threads ? threads : 1;
    // What a thread makes of inputs is four times as large as these, and to fetch it from another
    // core's cache may take longer than to make it. Of few threads each makes its own: of its
    // tiles, or of all for its panels.
    if (threads > kOwnThreads || panels * parts < threads) {
      parallel(count, std::max<int64_t>(1, 2048 / depth),
               [&](int64_t begin, int64_t end) { transform(begin, end, v); });
      parallel(parts * panels, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          product(v, i % panels, i / panels * count / parts, (i / panels + 1) * count / parts);
      });
      continue;
    }
    const auto share = [&](int64_t n, int64_t piece) { return piece * n / threads; };
    parallel(threads, 1, [&](int64_t piece, int64_t last) {
      const bool tiles_apart = parts > 1;
      const int64_t begin = tiles_apart ? share(count, piece) : 0;
      const int64_t end = tiles_apart ? share(count, last) : count;
      const int64_t panel = tiles_apart ? 0 : share(panels, piece);
      const int64_t last_panel = tiles_apart ? panels : share(panels, last);
      int16_t* const own = tiles_apart || threads == 1
                               ? v
                               : reinterpret_cast<int16_t*>(thread_floats(
                                     3, static_cast<size_t>(kPoints * matrix_step(g) / 2)));
      transform(begin, end, own);
      for (int64_t i = panel; i < last_panel; ++i) product(own, i, begin, end);
    });
  }
}

}  // namespace tombolo
#endif
