// Convolution of blocked channels to few channels, as images, masks and depths are at the end of a
// network: tiles of the other ways would mostly compute channels that are not there. Here lanes are
// input channels. Each output of a pixel has a vector of sums, whose lanes are added up in the end.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/block_narrow.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_BLOCK_NARROW_ONCE  // included once for each target
#define TOMBOLO_BLOCK_NARROW_ONCE
namespace tombolo {

/// Pixels side by side, and some outputs of each.
struct NarrowTile {
  const float* x;         ///< the window of the first pixel
  int64_t step;           ///< floats from pixel to pixel
  int64_t row, column;    ///< ... from one position of the kernel to the next
  int64_t plane;          ///< ... from one block of channels to the next
  int64_t blocks, rest;   ///< whole blocks; channels of one more
  int64_t rows, columns;  ///< positions of the kernel
  const float* w;         ///< [block][row][column][output][16], of the first row and output
  int64_t outputs;        ///< that w has
  int64_t w_block;        ///< floats of w from one block to the next
  float* sums;            ///< [output][pixel]
  int64_t ld;             ///< floats from one output to the next
};
using NarrowTileFn = void(const NarrowTile&);
/// Rows [outputs][ld] of `pixels` pixels to [pixel][16] with zeros in the end, on top of a residual
/// that lies so, or null. Rows may be read up to the next multiple of four pixels.
using NarrowPixelsFn = void(const float* rows, int64_t ld, int64_t outputs, int64_t pixels,
                            const float* residual, float* y);

inline constexpr int kMostNarrowOutputs = 4;
struct NarrowTiles {
  int most;  ///< outputs of a tile
  int pixels[kMostNarrowOutputs + 1] = {};
  NarrowTileFn* dense[kMostNarrowOutputs + 1] = {};    ///< step is kBlock
  NarrowTileFn* strided[kMostNarrowOutputs + 1] = {};  ///< any step
  NarrowPixelsFn* pixels_of_rows;
};

}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using NarrowFloats = hn::CappedTag<float, 16>;
using NarrowVec = hn::Vec<NarrowFloats>;
inline constexpr int64_t kNarrowLanes =
    static_cast<int64_t>(HWY_LANES(float)) < 16 ? HWY_LANES(float) : 16;

/// Four lanes whose sum is that of all kLanes.
template <int64_t kLanes, class D>
HWY_INLINE auto fold(D, hn::Vec<D> v) {
  if constexpr (kLanes == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return fold<kLanes / 2>(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// out[i] = the sum of all lanes of the i-th.
HWY_INLINE void store_sums(NarrowVec a, NarrowVec b, NarrowVec c, NarrowVec e, float* out) {
  const NarrowFloats f;
  const hn::CappedTag<float, 4> four;
  const auto a4 = fold<kNarrowLanes>(f, a), b4 = fold<kNarrowLanes>(f, b),
             c4 = fold<kNarrowLanes>(f, c), e4 = fold<kNarrowLanes>(f, e);
  const auto ab = hn::Add(hn::InterleaveLower(four, a4, b4), hn::InterleaveUpper(four, a4, b4));
  const auto ce = hn::Add(hn::InterleaveLower(four, c4, e4), hn::InterleaveUpper(four, c4, e4));
  hn::StoreU(hn::Add(hn::ConcatLowerLower(four, ce, ab), hn::ConcatUpperUpper(four, ce, ab)), four,
             out);
}

/// One block of channels, `channels` of them.
template <int kP, int kO, int64_t kStep, bool kWhole>
HWY_INLINE void add_block(NarrowVec (&acc)[kP][kO], const NarrowTile& t, const float* x,
                          const float* w, int64_t channels) {
  const NarrowFloats f;
  const int64_t step = kStep != 0 ? kStep : t.step, position = t.outputs * kBlock;
  for (int64_t r = 0; r < t.rows; ++r, x += t.row) {
    const float* at = x;
    for (int64_t c = 0; c < t.columns; ++c, at += t.column, w += position) {
#pragma GCC unroll 4
      for (int64_t lane = 0; lane < kBlock; lane += kNarrowLanes) {
        if (!kWhole && lane >= channels) break;
        NarrowVec wv[kO];
#pragma GCC unroll 4
        for (int o = 0; o < kO; ++o) wv[o] = hn::LoadU(f, w + o * kBlock + lane);
#pragma GCC unroll 8
        for (int p = 0; p < kP; ++p) {
          // What is beyond the last channel may be anything.
          NarrowVec xv = kWhole ? hn::LoadU(f, at + p * step + lane)
                                : load_n(f, at + p * step + lane, channels - lane);
          if (kO > 1) keep_in_register(xv);
#pragma GCC unroll 4
          for (int o = 0; o < kO; ++o) add_product(acc[p][o], xv, wv[o]);
        }
      }
    }
  }
}

template <int kP, int kO, int64_t kStep>
void narrow_tile(const NarrowTile& t) {
  const NarrowFloats f;
  NarrowVec acc[kP][kO];
#pragma GCC unroll 8
  for (int p = 0; p < kP; ++p)
#pragma GCC unroll 4
    for (int o = 0; o < kO; ++o) acc[p][o] = hn::Zero(f);
  const float *x = t.x, *w = t.w;
  for (int64_t b = 0; b < t.blocks; ++b, x += t.plane, w += t.w_block)
    add_block<kP, kO, kStep, true>(acc, t, x, w, kBlock);
  if (t.rest > 0) add_block<kP, kO, kStep, false>(acc, t, x, w, t.rest);
#pragma GCC unroll 4
  for (int o = 0; o < kO; ++o)
#pragma GCC unroll 2
    for (int p = 0; p < kP; p += 4)
      store_sums(acc[p][o], acc[p + 1][o], acc[p + 2][o], acc[p + 3][o], t.sums + o * t.ld + p);
}

/// Channels of a pixel, of four rows from `rows` on.
HWY_INLINE void turn_four(const float* rows, int64_t ld, int64_t count,
                          hn::Vec<hn::FixedTag<float, 4>> (&pixels)[4]) {
  const hn::FixedTag<float, 4> four;
  const auto row = [&](int64_t i) {
    return i < count ? hn::LoadU(four, rows + i * ld) : hn::Zero(four);
  };
  const auto a = row(0), b = row(1), c = row(2), e = row(3);
  const auto ac_low = hn::InterleaveLower(four, a, c), ac_high = hn::InterleaveUpper(four, a, c);
  const auto be_low = hn::InterleaveLower(four, b, e), be_high = hn::InterleaveUpper(four, b, e);
  pixels[0] = hn::InterleaveLower(four, ac_low, be_low);
  pixels[1] = hn::InterleaveUpper(four, ac_low, be_low);
  pixels[2] = hn::InterleaveLower(four, ac_high, be_high);
  pixels[3] = hn::InterleaveUpper(four, ac_high, be_high);
}

void pixels_of_rows(const float* rows, int64_t ld, int64_t outputs, int64_t pixels,
                    const float* residual, float* y) {
  const hn::FixedTag<float, 4> four;
  for (int64_t p = 0; p < pixels; p += 4)
    for (int64_t o = 0; o < kBlock; o += 4) {
      hn::Vec<decltype(four)> turned[4];
      turn_four(rows + o * ld + p, ld, outputs - o, turned);
      const auto kept =
          hn::FirstN(four, static_cast<size_t>(std::clamp<int64_t>(outputs - o, 0, 4)));
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) {
        if (i >= pixels - p) break;
        const int64_t at = (p + i) * kBlock + o;
        if (residual != nullptr)
          turned[i] = hn::Add(turned[i], hn::IfThenElseZero(kept, hn::LoadU(four, residual + at)));
        hn::StoreU(turned[i], four, y + at);
      }
    }
}

template <int kP, int kO>
void add_tile(NarrowTiles& tiles) {
  tiles.pixels[kO] = kP;
  tiles.dense[kO] = &narrow_tile<kP, kO, kBlock>;
  tiles.strided[kO] = &narrow_tile<kP, kO, 0>;
}
NarrowTiles make_narrow_tiles() {
  NarrowTiles tiles{};
  tiles.pixels_of_rows = &pixels_of_rows;
  add_tile<8, 1>(tiles);
#if HWY_TARGET == HWY_AVX3  // 32 registers
  tiles.most = 4;
  add_tile<8, 2>(tiles);
  add_tile<8, 3>(tiles);
  add_tile<4, 4>(tiles);
#else
  tiles.most = 3;
  add_tile<4, 2>(tiles);
  add_tile<4, 3>(tiles);
#endif
  return tiles;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

constexpr int64_t kMostPixels = 8;       ///< of a tile
constexpr int64_t kSegmentPixels = 256;  ///< of a task, a multiple of that
constexpr int64_t kLeastInputs = 12;     ///< of a sum, for each output

const NarrowTiles& narrow_tiles() {
  static IsaTables<NarrowTiles> tables;
  return tables.get(TOMBOLO_TARGET(NarrowTiles(), make_narrow_tiles));
}

/// Windows of some pixels of a row, or of a copy that has zeros where they leave the image.
class NarrowRow {
 public:
  /// `at` is the row of the image that the first of `rows` rows of the kernel sees.
  NarrowRow(const ConvGeometry& s, const float* image, int64_t at, int64_t rows, float* room)
      : s_(s), image_(image), at_(at), rows_(rows), room_(room) {}

  static int64_t room_floats(const ConvGeometry& s) {
    return blocks_of(s.in_channels) * s.kernel[1] * width(s, kMostPixels) * kBlock;
  }
  /// Of `pixels` output pixels from `from` on.
  void set(int64_t from, int64_t pixels, NarrowTile& t) const {
    const int64_t first = from * s_.stride[2] - s_.pad[2], columns = width(s_, pixels);
    t.column = s_.dilation[2] * kBlock;
    t.step = s_.stride[2] * kBlock;
    if (first >= 0 && first + columns <= s_.in[2]) {
      t.x = image_ + (at_ * s_.in[2] + first) * kBlock;
      t.row = s_.dilation[1] * s_.in[2] * kBlock;
      t.plane = s_.in_plane() * kBlock;
      return;
    }
    const int64_t left = std::clamp<int64_t>(-first, 0, columns);
    const int64_t right = std::clamp(s_.in[2] - first, left, columns);
    float* to = room_;
    for (int64_t b = 0; b < blocks_of(s_.in_channels); ++b)
      for (int64_t r = 0; r < rows_; ++r, to += columns * kBlock) {
        const float* row =
            image_ + ((b * s_.in[1] + at_ + r * s_.dilation[1]) * s_.in[2] + first) * kBlock;
        std::fill_n(to, left * kBlock, 0.0f);
        std::copy(row + left * kBlock, row + right * kBlock, to + left * kBlock);
        std::fill_n(to + right * kBlock, (columns - right) * kBlock, 0.0f);
      }
    t.x = room_;
    t.row = columns * kBlock;
    t.plane = rows_ * t.row;
  }

 private:
  static int64_t width(const ConvGeometry& s, int64_t pixels) {
    return (pixels - 1) * s.stride[2] + s.extent(2);
  }

  const ConvGeometry& s_;
  const float* image_;
  const int64_t at_, rows_;
  float* const room_;
};

/// A row's sums [output][ld], which it may change, as the output lies.
void finish_narrow(const BlockConvPlan& plan, float* sums, int64_t ld, int64_t image, int64_t first,
                   int64_t pixels, const ConvEpilogue& e, float* y) {
  const ConvGeometry& s = plan.shape;
  const int64_t outputs = s.out_channels;
  const auto finish = [&](int64_t o, const float* residual, const Activation& activation,
                          float* to) {
    finish_row(sums + o * ld, e.bias != nullptr ? e.bias[o] : 0, residual, activation, pixels, to);
  };
  if (plan.plain_output) {
    for (int64_t o = 0; o < outputs; ++o) {
      const int64_t at = (image * outputs + o) * s.out_plane() + first;
      finish(o, e.residual != nullptr ? e.residual + at : nullptr, e.activation, y + at);
    }
    return;
  }
  const int64_t start = (image * s.out_plane() + first) * kBlock;
  float* const to = y + start;
  // While they are rows, activations see no lanes that are idle.
  const bool blocked = e.residual != nullptr;
  for (int64_t o = 0; o < outputs; ++o)
    finish(o, nullptr, blocked ? Activation() : e.activation, sums + o * ld);
  narrow_tiles().pixels_of_rows(sums, ld, outputs, pixels, blocked ? e.residual + start : nullptr,
                                to);
  if (blocked && e.activation.kind != Activation::Kind::kNone)
    apply_activation(e.activation, to, kBlock, pixels, outputs);
}

}  // namespace

bool plan_block_narrow(BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  if (plan.plain || !is_narrow(s.groups, s.in_channels, s.out_channels, s.taps())) return false;
  // Rows of pixels side by side, and enough products for what lanes are added up for, unless
  // nothing else gives channels first.
  if (!plan.plain_output && (s.out[2] < kMostPixels || s.out_plane() < 64 ||
                             s.in_channels * s.taps() < kLeastInputs * s.out_channels))
    return false;
  plan.weight_floats =
      static_cast<size_t>(blocks_of(s.in_channels) * kBlock * s.taps() * s.out_channels);
  return true;
}

void pack_block_narrow(const BlockConvPlan& plan, const float* w, float* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t taps = s.taps(), outputs = s.out_channels;
  for (int64_t c = 0; c < blocks_of(s.in_channels) * kBlock; ++c)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t o = 0; o < outputs; ++o)
        packed[((c / kBlock * taps + t) * outputs + o) * kBlock + c % kBlock] =
            c < s.in_channels ? w[(o * s.in_channels + c) * taps + t] : 0.0f;
}

void run_block_narrow(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                      const ConvEpilogue& epilogue) {
  const ConvGeometry& s = plan.shape;
  const NarrowTiles& tiles = narrow_tiles();
  const int64_t outputs = s.out_channels, groups = (outputs + tiles.most - 1) / tiles.most;
  const int64_t segments = (s.out[2] + kSegmentPixels - 1) / kSegmentPixels;
  const int64_t length = round_up((s.out[2] + segments - 1) / segments, kMostPixels);
  const int64_t position = outputs * kBlock, w_row = s.kernel[2] * position;
  const int64_t in_image = blocks_of(s.in_channels) * s.in_plane() * kBlock;
  const int64_t cost = length * outputs * blocks_of(s.in_channels) * kBlock * s.taps();
  const auto run_segment = [&](int64_t image, int64_t line, int64_t begin, int64_t end) {
    float* const sums =
        thread_floats(2, static_cast<size_t>(outputs * length + NarrowRow::room_floats(s)));
    const auto [first, last] = positions_inside(s, 1, line);
    const NarrowRow windows(s, x + image * in_image,
                            line * s.stride[1] - s.pad[1] + first * s.dilation[1], last - first,
                            sums + outputs * length);
    NarrowTile t{};
    t.blocks = s.in_channels / kBlock;
    t.rest = s.in_channels % kBlock;
    t.rows = last - first;
    t.columns = s.kernel[2];
    t.outputs = outputs;
    t.w_block = s.kernel[1] * w_row;
    t.ld = length;
    const auto first_of = [&](int64_t group) { return outputs * group / groups; };
    int64_t pixels = 0;
    for (int64_t g = 0; g < groups; ++g)
      pixels = std::max<int64_t>(pixels, tiles.pixels[first_of(g + 1) - first_of(g)]);
    for (int64_t p = begin; p < end; p += pixels) {
      windows.set(p, pixels, t);
      const float* const x0 = t.x;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t o = first_of(g), count = first_of(g + 1) - o;
        t.w = packed + first * w_row + o * kBlock;
        for (int64_t q = 0; q < pixels; q += tiles.pixels[count]) {
          t.x = x0 + q * t.step;
          t.sums = sums + o * length + p - begin + q;
          (t.step == kBlock ? tiles.dense : tiles.strided)[count](t);
        }
      }
    }
    finish_narrow(plan, sums, length, image, line * s.out[2] + begin, end - begin, epilogue, y);
  };
  parallel(s.batch * s.out[1] * segments, std::max<int64_t>(1, kLeastProducts / cost),
           [&](int64_t from, int64_t to) {
             for (int64_t task = from; task < to; ++task) {
               const int64_t line = task / segments, begin = task % segments * length;
               run_segment(line / s.out[1], line % s.out[1], begin,
                           std::min(s.out[2], begin + length));
             }
           });
}

}  // namespace tombolo
#endif
