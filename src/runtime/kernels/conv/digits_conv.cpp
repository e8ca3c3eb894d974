#include "runtime/kernels/conv/digits_conv.h"

#include <algorithm>
#include <cstring>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

constexpr int64_t kHeader = 64;  // bytes before the matrix: whether it is there
constexpr int64_t kTileRows = 16, kMostRows = 256;

/// The positions of the kernel, and the phases of the image that they need.
void plan_positions(DigitsConv& plan) {
  const ConvGeometry& s = plan.shape;
  plan.rows = s.out[1] + (s.extent(1) - 1) / s.stride[1];
  plan.columns = s.out[2] + (s.extent(2) - 1) / s.stride[2];
  for (int64_t i = 0; i < s.kernel[1]; ++i)
    for (int64_t j = 0; j < s.kernel[2]; ++j) {
      const int64_t y = i * s.dilation[1], x = j * s.dilation[2];
      const int64_t row = y % s.stride[1], column = x % s.stride[2];
      auto& phases = plan.phases;
      auto found = std::find_if(phases.begin(), phases.end(), [&](const DigitsConv::Phase& p) {
        return p.row == row && p.column == column;
      });
      if (found == phases.end()) found = phases.insert(found, {row, column});
      const int64_t at = (found - phases.begin()) * plan.rows * plan.columns +
                         y / s.stride[1] * plan.columns + x / s.stride[2];
      for (int64_t c = 0; c < plan.channels; c += kDigitsDepth)
        plan.steps.push_back(at * plan.pixel + c * 4);
    }
  const int64_t width = s.out[2], count = (s.out[1] - 1) * plan.columns + width;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = r / plan.columns, column = r % plan.columns;
    plan.places.push_back(column < width ? static_cast<int32_t>(row * width + column) : -1);
  }
}

/// Pixels [begin, end) of all phases' rows, as digits.
void split_phase_rows(const DigitsConv& plan, const float* x, const DigitScale& scale,
                      std::byte* image) {
  const ConvGeometry& s = plan.shape;
  const int64_t plane = s.in_plane() * kBlock;
  parallel(static_cast<int64_t>(plan.phases.size()) * plan.rows,
           std::max<int64_t>(1, 8192 / (plan.columns * plan.channels)),
           [&](int64_t begin, int64_t end) {
             for (int64_t task = begin; task < end; ++task) {
               const DigitsConv::Phase& phase = plan.phases[static_cast<size_t>(task / plan.rows)];
               const int64_t row = phase.row + task % plan.rows * s.stride[1] - s.pad[1];
               std::byte* to = image + task * plan.columns * plan.pixel;
               for (int64_t i = 0; i < plan.columns; ++i, to += plan.pixel) {
                 const int64_t column = phase.column + i * s.stride[2] - s.pad[2];
                 const DigitPlaces places{to, 4 * 64, 64};
                 if (row < 0 || row >= s.in[1] || column < 0 || column >= s.in[2])
                   clear_digits(s.in_channels, places);
                 else
                   split_digits_as({x + (row * s.in[2] + column) * kBlock, plane, s.in_channels},
                                   scale, places);
               }
             }
           });
}

/// One image, and how its result is finished.
struct Image {
  const DigitsConv& plan;
  const float* x;
  float* y;
  const ConvEpilogue& e;
  const float* residual;

  int64_t out_plane() const { return plan.shape.out_plane() * kBlock; }

  /// The window of result `place` in the order of packed weights.
  void window(int64_t place, float* out) const {
    const ConvGeometry& s = plan.shape;
    const int64_t plane = s.in_plane() * kBlock;
    std::fill_n(out, plan.panels.k, 0.0f);
    const int64_t y0 = place / s.out[2] * s.stride[1] - s.pad[1];
    const int64_t x0 = place % s.out[2] * s.stride[2] - s.pad[2];
    for (int64_t i = 0; i < s.kernel[1]; ++i)
      for (int64_t j = 0; j < s.kernel[2]; ++j, out += plan.channels) {
        const int64_t row = y0 + i * s.dilation[1], column = x0 + j * s.dilation[2];
        if (row < 0 || row >= s.in[1] || column < 0 || column >= s.in[2]) continue;
        const float* const from = x + (row * s.in[2] + column) * kBlock;
        for (int64_t c = 0; c < s.in_channels; ++c) out[c] = from[c / kBlock * plane + c % kBlock];
      }
  }
};

/// Some rows of the product.
struct Rows {
  const Image& image;
  int64_t begin, count;

  int64_t place(int64_t row) const {
    return image.plan.pointwise() ? begin + row
                                  : image.plan.places[static_cast<size_t>(begin + row)];
  }
  static const float* floats(const void* argument, int64_t row, float* room) {
    const Rows& self = *static_cast<const Rows*>(argument);
    self.image.window(self.place(row), room);
    return room;
  }
  /// The results of these rows lie one behind the other, but for those that nobody reads.
  static void finish(const void* argument, int64_t, int64_t column, int64_t columns) {
    const Rows& self = *static_cast<const Rows*>(argument);
    int64_t first = 0, last = self.count - 1;
    while (first <= last && self.place(first) < 0) ++first;
    while (last >= first && self.place(last) < 0) --last;
    if (first > last) return;
    const int64_t from = self.place(first), pixels = self.place(last) + 1 - from;
    for (int64_t c = column; c < column + columns; c += kBlock)
      apply_activation(self.image.e.activation,
                       self.image.y + c / kBlock * self.image.out_plane() + from * kBlock,
                       pixels * kBlock);
  }

  void multiply(DigitRows a, const std::byte* b, int64_t from, int64_t to) const {
    const DigitPanels& panels = image.plan.panels;
    a.floats = &floats;
    a.argument = this;
    const bool linear = a.places == nullptr;
    DigitResult result{
        .c = image.y + (linear ? begin * kBlock : 0), .ldc = kBlock, .plane = image.out_plane()};
    if (image.residual != nullptr) {
      result.init = image.residual + (linear ? begin * kBlock : 0);
      result.ldi = kBlock;
      result.init_plane = image.out_plane();
    }
    const Activation& activation = image.e.activation;
    result.column_bias = image.e.bias;
    result.clamp = activation.kind == Activation::Kind::kClamp;
    result.lo = activation.alpha;
    result.hi = activation.beta;
    if (!activation.tiled()) {
      result.post = &finish;
      result.argument = this;
    }
    digits_product(a, count, b, panels, result, panels.steps(), from, to);
  }
};

int64_t block_rows(int64_t results) {
  const int64_t blocks = (results + kMostRows - 1) / kMostRows;
  return round_up((results + blocks - 1) / blocks, kTileRows);
}

/// Tasks for blocks of rows by parts of the panels: body(first row, panels from, to).
template <typename Body>
void share(int64_t results, int64_t rows, int64_t panels, Body&& body) {
  const int64_t blocks = (results + rows - 1) / rows, threads = thread_count();
  const int64_t groups = threads == 1 ? 1 : std::clamp<int64_t>(8 * threads / blocks, 1, panels);
  parallel(blocks * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t at = task % groups;
      body(task / groups * rows, panels * at / groups, panels * (at + 1) / groups);
    }
  });
}

}  // namespace

int64_t DigitsConv::results() const {
  return pointwise() ? shape.out_plane() : static_cast<int64_t>(places.size());
}

bool digits_conv_fits(const ConvGeometry& s) {
  const int64_t channels = round_up(s.in_channels, kDigitsDepth);
  return digits_fit(s.out_channels, channels) && s.groups == 1 && s.kernel[0] == 1 &&
         s.in[0] == 1 && s.out_channels >= 96 && s.in_channels * 4 >= channels * 3 &&
         s.taps() * channels >= 128 && s.out_plane() >= 56;
}

DigitsConv plan_digits_conv(const ConvGeometry& shape) {
  DigitsConv plan;
  plan.shape = shape;
  plan.channels = round_up(shape.in_channels, kDigitsDepth);
  plan.panels = {shape.taps() * plan.channels, shape.out_channels};
  plan.weight_bytes = static_cast<size_t>(kHeader + plan.panels.bytes());
  plan.pixel = plan.channels * 4;
  if (plan.pointwise()) {
    for (int64_t i = 0; i < plan.panels.steps(); ++i) plan.steps.push_back(i * 4 * 1024);
    plan.scratch_bytes = static_cast<size_t>(round_up(plan.results(), kTileRows) * plan.pixel +
                                             8 * (plan.results() + kMostRows) + 64);
    return plan;
  }
  // Sixteen pixels are read at a time: not all from one set of the caches.
  if (plan.pixel % 1024 == 0) plan.pixel += 64;
  plan_positions(plan);
  const int64_t image =
      static_cast<int64_t>(plan.phases.size()) * plan.rows * plan.columns * plan.pixel;
  plan.scratch_bytes =
      static_cast<size_t>(image + kTileRows * plan.pixel + 4096 + 8 * (plan.results() + kMostRows));
  return plan;
}

void pack_digits_conv(const DigitsConv& plan, const float* w, std::byte* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t taps = s.taps(), depth = s.in_channels * taps;
  std::byte* const matrix = packed + kHeader;
  const ReadFloats nobody = {[](const void*, int64_t, int64_t) {}, nullptr};
  const bool fits = digits_of(reinterpret_cast<const std::byte*>(w), depth, s.out_channels, true,
                              nobody, reinterpret_cast<float*>(matrix));
  std::memset(packed, 0, kHeader);
  packed[0] = static_cast<std::byte>(fits);
  if (!fits) return;
  parallel(plan.panels.panels(), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> rows(static_cast<size_t>(plan.channels * kDigitsWidth));
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kDigitsWidth;
      const int64_t outputs = std::min(kDigitsWidth, s.out_channels - first);
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t o = 0; o < outputs; ++o)
          for (int64_t c = 0; c < s.in_channels; ++c)
            rows[static_cast<size_t>(c * kDigitsWidth + o)] = w[(first + o) * depth + c * taps + t];
        digits_pack(rows.data(), t * plan.channels, plan.channels, plan.panels, panel, matrix);
      }
    }
  });
}

bool digits_conv_packed(const std::byte* packed) { return packed[0] != std::byte{0}; }

void run_digits_conv(const DigitsConv& plan, const float* x, const std::byte* packed, float* y,
                     const ConvEpilogue& epilogue, std::byte* scratch) {
  const ConvGeometry& s = plan.shape;
  const std::byte* const matrix = packed + kHeader;
  const int64_t in = blocks_of(s.in_channels) * s.in_plane() * kBlock;
  const int64_t out = blocks_of(s.out_channels) * s.out_plane() * kBlock;
  const int64_t results = plan.results(), rows = block_rows(results);
  const int64_t tiles = (results + kTileRows - 1) / kTileRows, panels = plan.panels.panels();
  auto* const scales = reinterpret_cast<float*>(scratch);
  std::byte* const digits = scratch + round_up(results, kTileRows) * 4;
  for (int64_t n = 0; n < s.batch; ++n) {
    const Image image{plan, x + n * in, y + n * out, epilogue,
                      epilogue.residual != nullptr ? epilogue.residual + n * out : nullptr};
    DigitRows a{.digits = digits, .steps = plan.steps.data(), .scales = scales};
    if (plan.pointwise()) {
      const int64_t tile_bytes = kTileRows * plan.pixel;
      a.tile = tile_bytes;
      a.line = 64;
      a.digit = 1024;
      const int64_t plane = s.in_plane() * kBlock;
      const auto split = [&](int64_t tile) {
        for (int64_t line = 0; line < kTileRows; ++line) {
          const int64_t r = tile * kTileRows + line;
          const DigitPlaces to{digits + tile * tile_bytes + line * 64, 4 * 1024, 1024};
          if (r >= results) {
            clear_digits(s.in_channels, to);
            continue;
          }
          const int64_t pixel = r / s.out[2] * s.stride[1] * s.in[2] + r % s.out[2] * s.stride[2];
          scales[r] = split_digits({image.x + pixel * kBlock, plane, s.in_channels}, to);
        }
      };
      const auto multiply = [&](int64_t row, int64_t from, int64_t to) {
        const int64_t tile = row / kTileRows;
        DigitRows some = a;
        some.digits += tile * tile_bytes;
        some.scales += row;
        Rows{image, row, std::min(rows, results - row)}.multiply(some, matrix, from, to);
      };
      if (thread_count() == 1) {  // what is multiplied is near
        for (int64_t row = 0; row < results; row += rows) {
          for (int64_t t = row / kTileRows; t < std::min(tiles, (row + rows) / kTileRows); ++t)
            split(t);
          multiply(row, 0, panels);
        }
        continue;
      }
      parallel(tiles, std::max<int64_t>(1, 1024 / plan.channels), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) split(t);
      });
      share(results, rows, panels, multiply);
      continue;
    }
    const DigitScale scale = digits_scale(image.x, s.in_channels, s.in_plane());
    if (scale.scale > 0) split_phase_rows(plan, image.x, scale, digits);
    for (int64_t r = 0; r < results; ++r)
      scales[r] = plan.places[static_cast<size_t>(r)] < 0 ? 0 : scale.scale;
    a.tile = kTileRows * plan.pixel;
    a.line = plan.pixel;
    a.digit = 64;
    a.places = plan.places.data();
    share(results, rows, panels, [&](int64_t row, int64_t from, int64_t to) {
      DigitRows some = a;
      some.digits += row * plan.pixel;
      some.scales += row;
      some.places += row;
      Rows{image, row, std::min(rows, results - row)}.multiply(some, matrix, from, to);
    });
  }
}

}  // namespace tombolo
