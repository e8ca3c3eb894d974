#include "runtime/kernels/conv/bf16_winograd.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/conv/share_transforms.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"

#if defined(__x86_64__)
#include "runtime/kernels/bf16_target.h"

namespace tombolo {
namespace {

constexpr int64_t kPoints = 4, kProducts = kPoints * kPoints, kTile = 2;

TOMBOLO_BF16 inline void transform(const __m512 (&x)[4], __m512 (&y)[4]) {
  y[0] = _mm512_sub_ps(x[0], x[2]);
  y[1] = _mm512_add_ps(x[1], x[2]);
  y[2] = _mm512_sub_ps(x[2], x[1]);
  y[3] = _mm512_sub_ps(x[1], x[3]);
}

/// 4 x 4 pixels of one block, `channels` of each, to 16 rows `step` bytes apart.
TOMBOLO_BF16 void transform_input(const float* x, int64_t row_step, int64_t channels,
                                  std::byte* out, int64_t step) {
  const __mmask16 some = first_lanes(channels);
  __m512 half[kPoints][kPoints];
#pragma GCC unroll 4
  for (int i = 0; i < kPoints; ++i) {
    __m512 in[kPoints];
#pragma GCC unroll 4
    for (int j = 0; j < kPoints; ++j)
      in[j] = _mm512_maskz_loadu_ps(some, x + i * row_step + j * kBlock);
    transform(in, half[i]);
  }
#pragma GCC unroll 4
  for (int j = 0; j < kPoints; ++j) {
    const __m512 in[kPoints] = {half[0][j], half[1][j], half[2][j], half[3][j]};
    __m512 y[kPoints];
    transform(in, y);
#pragma GCC unroll 4
    for (int i = 0; i < kPoints; ++i)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + (i * kPoints + j) * step),
                          (__m256i)_mm512_cvtneps_pbh(y[i]));
  }
}

TOMBOLO_BF16 inline void inverse(const __m512 (&x)[4], __m512 (&y)[2]) {
  y[0] = _mm512_add_ps(x[0], _mm512_add_ps(x[1], x[2]));
  y[1] = _mm512_sub_ps(_mm512_sub_ps(x[1], x[2]), x[3]);
}

/// What becomes of the sums of a block of channels.
struct BlockFinish {
  const float* bias;
  const float* residual;
  bool clamp;
  float lo, hi;
  int64_t row_step;  ///< of the residual and of y
};

/// m[16], `step` floats apart, to height x width of 2 x 2 pixels.
TOMBOLO_BF16 void transform_output(const float* m, int64_t step, const BlockFinish& f,
                                   int64_t height, int64_t width, float* y) {
  __m512 half[kTile][kPoints];
#pragma GCC unroll 4
  for (int j = 0; j < kPoints; ++j) {
    __m512 in[kPoints], out[kTile];
#pragma GCC unroll 4
    for (int i = 0; i < kPoints; ++i) in[i] = _mm512_loadu_ps(m + (i * kPoints + j) * step);
    inverse(in, out);
    half[0][j] = out[0];
    half[1][j] = out[1];
  }
  const __m512 bias = f.bias != nullptr ? _mm512_loadu_ps(f.bias) : _mm512_setzero_ps();
  const __m512 lo = _mm512_set1_ps(f.lo), hi = _mm512_set1_ps(f.hi);
#pragma GCC unroll 2
  for (int i = 0; i < kTile; ++i) {
    if (i >= height) break;
    __m512 out[kTile];
    inverse(half[i], out);
#pragma GCC unroll 2
    for (int j = 0; j < kTile; ++j) {
      if (j >= width) break;
      const int64_t at = i * f.row_step + j * kBlock;
      __m512 v = _mm512_add_ps(out[j], bias);
      if (f.residual != nullptr) v = _mm512_add_ps(v, _mm512_loadu_ps(f.residual + at));
      if (f.clamp) v = _mm512_min_ps(hi, _mm512_max_ps(lo, v));  // in this order a NaN stays
      _mm512_storeu_ps(y + at, v);
    }
  }
}

int64_t bf16_panels(const ConvGeometry& s) {
  return (blocks_of(s.out_channels) * kBlock + kBf16Panel - 1) / kBf16Panel;
}
/// Bytes of one matrix of weights.
int64_t matrix_bytes(const ConvGeometry& s) {
  return bf16_b_bytes(s.in_channels, blocks_of(s.out_channels) * kBlock);
}

/// Of so many tiles the transformed ones, [product][tile][channel] in bf16, and their sums,
/// [product][panel][tile][32]. A tile is spread over all products: an odd number of lines from one
/// to the next.
struct WinogradRoom {
  int64_t row, a_step, m_step;  ///< bytes, bytes, floats

  WinogradRoom(const ConvGeometry& s, int64_t tiles)
      : row(round_up(bf16_stretch(s.in_channels) * 2, 64) + 64),
        a_step((tiles * row / 64 | 1) * 64),
        m_step((bf16_panels(s) * tiles * 2 | 1) * 16) {}
  int64_t a_bytes() const { return kProducts * a_step + 4096; }
  int64_t bytes() const { return a_bytes() + kProducts * m_step * 4 + 64; }
};

class Convolution {
 public:
  Convolution(const Bf16Winograd& plan, const float* x, const std::byte* packed, float* y,
              const ConvEpilogue& epilogue)
      : plan_(plan), s_(plan.shape), x_(x), packed_(packed), y_(y), e_(epilogue) {}

  void run(std::byte* scratch) const {
    const int64_t all = plan_.tiles();
    const auto begin = [&](int64_t block) { return all * block / plan_.blocks; };
    if (plan_.own) {
      parallel(plan_.blocks, 1, [&](int64_t first, int64_t last) {
        const WinogradRoom room(s_, plan_.held());
        auto* const own = reinterpret_cast<std::byte*>(
            thread_floats(2, static_cast<size_t>(room.bytes() / 4 + 16)));
        for (int64_t block = first; block < last; ++block)
          convolve(own, begin(block), begin(block + 1), true);
      });
      return;
    }
    for (int64_t block = 0; block < plan_.blocks; ++block)
      convolve(scratch, begin(block), begin(block + 1), false);
  }

 private:
  void convolve(std::byte* at, int64_t first, int64_t last, bool alone) const {
    const int64_t count = last - first, panels = bf16_panels(s_);
    const WinogradRoom room(s_, count);
    auto* const m = reinterpret_cast<float*>(at + round_up(room.a_bytes(), 64));
    share_transforms(
        blocks_of(s_.in_channels), first, last, alone,
        [&](int64_t block, const TilesAtHand& some) { inputs(block, some, room, at); });
    const auto products = [&](int64_t from, int64_t to) { multiply(room, at, m, count, from, to); };
    alone ? products(0, kProducts * panels) : parallel(kProducts * panels, 1, products);
    share_transforms(
        blocks_of(s_.out_channels), first, last, alone,
        [&](int64_t block, const TilesAtHand& some) { outputs(block, some, room, m, count); });
  }

  struct Place {
    int64_t image, y, x;  ///< of its first output pixel
  };
  Place place(int64_t tile) const {
    const int64_t of_image = plan_.tiles_y * plan_.tiles_x, at = tile % of_image;
    return {tile / of_image, at / plan_.tiles_x * kTile, at % plan_.tiles_x * kTile};
  }

  void inputs(int64_t block, const TilesAtHand& some, const WinogradRoom& room,
              std::byte* a) const {
    const int64_t row = s_.in[2] * kBlock;
    const int64_t channels = std::min(kBlock, s_.in_channels - block * kBlock);
    alignas(64) float padded[kProducts * kBlock];
    for (int64_t tile = some.begin; tile < some.end; ++tile) {
      const Place at = place(tile);
      const int64_t y = at.y - s_.pad[1], x = at.x - s_.pad[2];
      const float* const plane =
          x_ + (at.image * blocks_of(s_.in_channels) + block) * s_.in[1] * row;
      std::byte* const to = a + (tile - some.held) * room.row + block * kBlock * 2;
      if (y >= 0 && x >= 0 && y + kPoints <= s_.in[1] && x + kPoints <= s_.in[2]) {
        transform_input(plane + y * row + x * kBlock, row, channels, to, room.a_step);
        continue;
      }
      std::memset(padded, 0, sizeof padded);
      const int64_t left = std::max<int64_t>(0, -x), right = std::min(kPoints, s_.in[2] - x);
      for (int64_t i = std::max<int64_t>(0, -y); i < std::min(kPoints, s_.in[1] - y); ++i)
        if (left < right)
          std::copy_n(plane + (y + i) * row + (x + left) * kBlock, (right - left) * kBlock,
                      padded + (i * kPoints + left) * kBlock);
      transform_input(padded, kPoints * kBlock, channels, to, room.a_step);
    }
  }

  /// Products [from, to), of each matrix by all panels.
  void multiply(const WinogradRoom& room, const std::byte* a, float* m, int64_t count, int64_t from,
                int64_t to) const {
    const int64_t panels = bf16_panels(s_), stretch = bf16_stretch(s_.in_channels);
    const int64_t panel_bytes = stretch * 2 * kBf16Panel, rows = bf16_tile_rows(count);
    const int64_t cuts = (count + rows - 1) / rows, offset = 0;
    Bf16Dot dot{nullptr, room.row, &offset, 1, stretch / 2, nullptr, nullptr};
    for (int64_t i = from; i < to; ++i) {
      const int64_t matrix = i / panels, panel = i % panels;
      dot.b = packed_ + matrix * matrix_bytes(s_) + panel * panel_bytes;
      float* const sums = m + matrix * room.m_step + panel * count * kBf16Panel;
      for (int64_t cut = 0; cut < cuts; ++cut) {
        const int64_t row = count * cut / cuts, until = count * (cut + 1) / cuts;
        dot.a = a + matrix * room.a_step + row * room.row;
        dot.sums = sums + row * kBf16Panel;
        bf16_dot(dot, static_cast<int>(until - row));
      }
    }
  }

  void outputs(int64_t block, const TilesAtHand& some, const WinogradRoom& room, const float* m,
               int64_t count) const {
    constexpr int64_t kBlocks = kBf16Panel / kBlock;  ///< of a panel
    const int64_t row = s_.out[2] * kBlock, out_blocks = blocks_of(s_.out_channels);
    const Activation& act = e_.activation;
    BlockFinish finish{.bias = e_.bias != nullptr ? e_.bias + block * kBlock : nullptr,
                       .residual = nullptr,
                       .clamp = act.kind == Activation::Kind::kClamp,
                       .lo = act.alpha,
                       .hi = act.beta,
                       .row_step = row};
    for (int64_t tile = some.begin; tile < some.end; ++tile) {
      const Place at = place(tile);
      const int64_t to =
          (at.image * out_blocks + block) * s_.out[1] * row + at.y * row + at.x * kBlock;
      if (e_.residual != nullptr) finish.residual = e_.residual + to;
      const int64_t height = std::min(kTile, s_.out[1] - at.y);
      const int64_t width = std::min(kTile, s_.out[2] - at.x);
      transform_output(
          m + (block / kBlocks * count + tile - some.held) * kBf16Panel + block % kBlocks * kBlock,
          room.m_step, finish, height, width, y_ + to);
      if (!act.tiled()) apply_activation(act, y_ + to, row, height, width * kBlock);
    }
  }

  const Bf16Winograd& plan_;
  const ConvGeometry& s_;
  const float* const x_;
  const std::byte* const packed_;
  float* const y_;
  const ConvEpilogue& e_;
};

}  // namespace

bool bf16_winograd_pays(const ConvGeometry& s) {
  if (!has_bf16_dot() || has_amx_bf16() || has_f16_products() || s.groups != 1 ||
      s.kernel[0] != 1 || s.in[0] != 1 || s.in_channels < 16)
    return false;
  for (const int axis : {1, 2})
    if (s.kernel[axis] != 3 || s.stride[axis] != 1 || s.dilation[axis] != 1) return false;
  constexpr double kNear = 12;                 // bytes of weights in a cycle
  constexpr double kSmall = 40, kLarge = 120;  // cycles to transform 16 channels of a tile
  const auto tiles = [&](int64_t edge) {
    return static_cast<double>(s.batch * ((s.out[1] + edge - 1) / edge) *
                               ((s.out[2] + edge - 1) / edge));
  };
  const auto in = static_cast<double>(s.in_channels), out = static_cast<double>(s.out_channels);
  const double transforms = (in + out) / 16, weights = in * out;
  // Weights that a second cache does not hold come so fast.
  const auto fetched = [&](double bytes) {
    return weights * bytes > static_cast<double>(near_bytes()) ? weights * bytes / kNear : 0;
  };
  const double small =
      weights * 16 * tiles(2) / kRoundedACycle + tiles(2) * transforms * kSmall + fetched(32);
  const double large =
      weights * 36 * tiles(4) / kFloatsACycle + tiles(4) * transforms * kLarge + fetched(144);
  const double plain =
      weights * 9 * static_cast<double>(s.batch * s.out_plane()) / kRoundedACycle + fetched(18);
  constexpr double kLess = 0.95;
  return small < kLess * std::min(large, plain);
}

Bf16Winograd plan_bf16_winograd(const ConvGeometry& shape) {
  Bf16Winograd plan;
  const ConvGeometry& s = plan.shape = shape;
  plan.tiles_y = (s.out[1] + kTile - 1) / kTile;
  plan.tiles_x = (s.out[2] + kTile - 1) / kTile;
  plan.weight_bytes = static_cast<size_t>(kProducts * matrix_bytes(s));
  constexpr int64_t kFewest = 48;  ///< tiles that repay the reading of weights
  const int64_t threads = thread_count(), tiles = plan.tiles();
  const int64_t most = std::max(kFewest, near_bytes() * 3 / 2 / WinogradRoom(s, 1).bytes());
  plan.blocks = (tiles + most - 1) / most;
  // Weights that stay near are used by each thread for blocks of its own.
  plan.own = static_cast<int64_t>(plan.weight_bytes) <= near_bytes() &&
             (plan.blocks >= threads || tiles >= kFewest * threads);
  if (plan.own) plan.blocks = round_up(plan.blocks, threads);
  plan.scratch_bytes =
      plan.own ? 0 : static_cast<size_t>(WinogradRoom(s, plan.held()).bytes() + 128);
  return plan;
}

void pack_bf16_winograd(const Bf16Winograd& plan, const float* w, std::byte* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t inputs = s.in_channels, matrix = inputs * kBf16Panel;
  for (int64_t i = 0; i < kProducts; ++i)
    bf16_pack_scale(1, inputs, blocks_of(s.out_channels) * kBlock, packed + i * matrix_bytes(s));
  const auto points = [](float a, float b, float c) {
    return std::array{a, (a + b + c) / 2, (a - b + c) / 2, c};
  };
  parallel(bf16_panels(s), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> rows(static_cast<size_t>(kProducts * matrix));
    for (int64_t panel = begin; panel < end; ++panel) {
      std::fill(rows.begin(), rows.end(), 0.0f);
      const int64_t first = panel * kBf16Panel;
      for (int64_t o = 0; o < std::min(kBf16Panel, s.out_channels - first); ++o)
        for (int64_t c = 0; c < inputs; ++c) {
          const float* const k = w + ((first + o) * inputs + c) * 9;
          std::array<float, 4> half[3];
          for (int j = 0; j < 3; ++j) half[j] = points(k[j], k[3 + j], k[6 + j]);
          for (size_t i = 0; i < kPoints; ++i) {
            const auto row = points(half[0][i], half[1][i], half[2][i]);
            for (size_t j = 0; j < kPoints; ++j)
              rows[(i * kPoints + j) * static_cast<size_t>(matrix) +
                   static_cast<size_t>(c * kBf16Panel + o)] = row[j];
          }
        }
      for (int64_t i = 0; i < kProducts; ++i)
        bf16_pack(rows.data() + i * matrix, 0, inputs, inputs, panel, 1,
                  packed + i * matrix_bytes(s));
    }
  });
}

void run_bf16_winograd(const Bf16Winograd& plan, const float* x, const std::byte* packed, float* y,
                       const ConvEpilogue& epilogue, std::byte* scratch) {
  Convolution(plan, x, packed, y, epilogue).run(scratch);
}

}  // namespace tombolo

#else

namespace tombolo {
bool bf16_winograd_pays(const ConvGeometry&) { return false; }
Bf16Winograd plan_bf16_winograd(const ConvGeometry&) { return {}; }
void pack_bf16_winograd(const Bf16Winograd&, const float*, std::byte*) {}
void run_bf16_winograd(const Bf16Winograd&, const float*, const std::byte*, float*,
                       const ConvEpilogue&, std::byte*) {}
}  // namespace tombolo

#endif
