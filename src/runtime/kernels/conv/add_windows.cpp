#include "runtime/kernels/conv/add_windows.h"

#include <algorithm>
#include <vector>

#include "base/cpu.h"
#include "runtime/kernels/conv/spread.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_tile.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

struct Range {
  int64_t begin, end;
};

int64_t divide_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

int64_t panels_of(const ConvGeometry& s) {
  const int64_t width = gemm_tiles().panel();
  return (s.out_channels + width - 1) / width;
}

/// The places of X that position k puts into `out`, along one axis.
Range places(const ConvGeometry& s, int axis, int64_t k, Range out) {
  const int64_t shift = s.pad[axis] - k * s.dilation[axis], step = s.stride[axis];
  return {std::max<int64_t>(0, divide_up(out.begin + shift, step)),
          std::min(s.in[axis], divide_up(out.end + shift, step))};
}

/// Output places [begin, end) along one axis, of one panel of channels of one group of one image.
struct Band {
  int axis;
  Range out;
  int64_t places;      ///< of Y in it
  int64_t wide, cols;  ///< floats between places, and those that are channels
};

class Windows {
 public:
  Windows(const ConvGeometry& s, const Band& band) : s_(s), tiles_(gemm_tiles()), band_(band) {
    for (int axis = 0; axis < 3; ++axis) {
      out_[axis] = axis == band.axis ? band.out : Range{0, s.out[axis]};
      for (int64_t k = 0; k < s.kernel[axis]; ++k)
        inside_[axis].push_back(places(s, axis, k, out_[axis]));
      size_[axis] = out_[axis].end - out_[axis].begin;
    }
  }

  /// To `sums`, which begin with the bias.
  void add(const float* x, const float* weights, float* sums) const {
    for (int64_t z = least(0); z < most(0); ++z)
      for (int64_t y = least(1); y < most(1); ++y)
        for (int64_t i = 0; i < s_.kernel[0]; ++i)
          for (int64_t j = 0; j < s_.kernel[1]; ++j)
            if (reaches(0, i, z) && reaches(1, j, y))
              add_row(x + (z * s_.in[1] + y) * s_.in[2],
                      weights + (i * s_.kernel[1] + j) * s_.kernel[2] * weight_floats(),
                      sums + (place(0, i, z) * size_[1] + place(1, j, y)) * size_[2] * band_.wide);
  }

 private:
  int64_t weight_floats() const { return s_.in_channels * tiles_.panel(); }
  bool reaches(int axis, int64_t k, int64_t at) const {
    const Range& range = inside_[axis][static_cast<size_t>(k)];
    return at >= range.begin && at < range.end;
  }
  int64_t place(int axis, int64_t k, int64_t at) const {
    return at * s_.stride[axis] + k * s_.dilation[axis] - s_.pad[axis] - out_[axis].begin;
  }
  int64_t least(int axis) const { return std::max<int64_t>(0, inside_[axis].back().begin); }
  int64_t most(int axis) const { return inside_[axis].front().end; }

  void add_row(const float* x, const float* weights, float* sums) const {
    for (int64_t k = 0; k < s_.kernel[2]; ++k, weights += weight_floats()) {
      const Range row = inside_[2][static_cast<size_t>(k)];
      if (row.begin >= row.end) continue;
      GemmTile t{.lda = s_.in_plane(),
                 .b = weights,
                 .ldb = tiles_.panel(),
                 .k = s_.in_channels,
                 .ldc = s_.stride[2] * band_.wide,
                 .cols = band_.wide};
      t.ldi = t.ldc;
      t.next = weights;
      const int64_t most = tiles_.tile_rows(row.end - row.begin);
      for (int64_t at = row.begin; at < row.end; at += most) {
        const int64_t rows = std::min(most, row.end - at);
        t.a = x + at;
        t.c = sums + place(2, k, at) * band_.wide;
        t.init = t.c;
        tiles_.packed_tile(static_cast<int>(rows), t.cols)(t);
      }
    }
  }

  const ConvGeometry& s_;
  const GemmTiles& tiles_;
  const Band& band_;
  Range out_[3];
  std::vector<Range> inside_[3];  ///< of each position
  int64_t size_[3];
};

}  // namespace

bool add_windows_pays(const ConvGeometry& s) {
  if (spread_apart(s) || s.stride[0] * s.stride[1] * s.stride[2] == 1) return false;
  // Of a vector of channels, one pixel and one position, in cycles: what lanes without a channel
  // take, against what it takes to spread, rows that fill no vector most. Fitted to 213 shapes,
  // with AVX-512, each measured both ways, and tried on 279 others, half of them with AVX2.
  const int64_t lanes = gemm_tiles().lanes, vectors = (s.out_channels + lanes - 1) / lanes;
  const auto channels = static_cast<double>(s.in_channels);
  const double used = static_cast<double>(s.out_channels) / static_cast<double>(vectors * lanes);
  const double spread = s.out[2] <= lanes * s.stride[2] ? 7 : 2.5;
  return (0.5 * channels + 2) / used < 0.9 * (0.54 * channels + spread);
}

size_t add_windows_weight_floats(const ConvGeometry& s) {
  return static_cast<size_t>(s.groups * panels_of(s) * s.depth() * gemm_tiles().panel());
}

void pack_add_windows(const ConvGeometry& s, const float* w, float* packed) {
  const int64_t width = gemm_tiles().panel(), panels = panels_of(s), taps = s.taps();
  const int64_t rows = s.in_channels;
  parallel(s.groups * panels, std::max<int64_t>(1, 16384 / (s.depth() * width)),
           [&](int64_t begin, int64_t end) {
             for (int64_t at = begin; at < end; ++at) {
               const int64_t first = at % panels * width;
               float* const to = packed + at * taps * rows * width;
               for (int64_t i = 0; i < rows; ++i) {
                 const float* const from = w + (at / panels * rows + i) * s.out_channels * taps;
                 for (int64_t c = 0; c < width; ++c)
                   for (int64_t t = 0; t < taps; ++t)
                     to[(t * rows + i) * width + c] =
                         first + c < s.out_channels ? from[(first + c) * taps + t] : 0;
               }
             }
           });
}

void add_windows(const ConvGeometry& s, const float* x, const float* packed, const float* bias,
                 float* y) {
  const GemmTiles& tiles = gemm_tiles();
  const int64_t width = tiles.panel(), panels = panels_of(s), plane = s.out_plane();
  const int axis = s.out[0] > 1 ? 0 : s.out[1] > 1 ? 1 : 2;
  const int64_t line = plane / s.out[axis];
  // Sums stay in the second cache.
  const int64_t most = std::max<int64_t>(1, near_bytes() / 4 / (line * width * 4));
  const int64_t bands = (s.out[axis] + most - 1) / most, tasks = s.batch * s.groups * panels;
  // Each thread has one band at least.
  const int64_t cut = std::min(s.out[axis], std::max(bands, (thread_count() + tasks - 1) / tasks));
  // Where most of Y sees nothing of X, bands have less than a product each.
  const int64_t operations = std::max<int64_t>(1, s.depth() * s.in_plane() * width / cut);
  parallel(
      tasks * cut, std::max<int64_t>(1, 100'000 / operations), [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t at = task % cut, panel = task / cut % panels;
          const int64_t group = task / cut / panels % s.groups, n = task / cut / panels / s.groups;
          const int64_t channel = group * s.out_channels + panel * width;
          Band band{axis, {at * s.out[axis] / cut, (at + 1) * s.out[axis] / cut}, 0, 0, 0};
          band.cols = std::min(width, s.out_channels - panel * width);
          band.wide = band.cols > tiles.lanes ? width : tiles.lanes;
          band.places = (band.out.end - band.out.begin) * line;
          float* const sums = thread_floats(1, static_cast<size_t>(band.places * band.wide));
          float start[2 * 16] = {};
          if (bias != nullptr) std::copy_n(bias + channel, band.cols, start);
          for (int64_t p = 0; p < band.places; ++p)
            std::copy_n(start, band.wide, sums + p * band.wide);
          Windows(s, band).add(x + (n * s.groups + group) * s.in_channels * s.in_plane(),
                               packed + (group * panels + panel) * s.depth() * width, sums);
          transpose_tile(
              reinterpret_cast<const std::byte*>(sums), band.wide,
              reinterpret_cast<std::byte*>(y + (n * s.groups * s.out_channels + channel) * plane +
                                           band.out.begin * line),
              plane, band.places, band.cols, sizeof(float));
        }
      });
}

}  // namespace tombolo
