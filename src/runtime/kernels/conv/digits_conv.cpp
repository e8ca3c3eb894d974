#include "runtime/kernels/conv/digits_conv.h"

#include <algorithm>
#include <cstring>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

constexpr int64_t kHeader = 64;  // bytes before the matrix: whether it is there

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

/// One image, and how its result is finished.
struct Image {
  const DigitsConv& plan;
  const float* x;
  float* y;
  const ConvEpilogue& e;

  int64_t out_plane() const { return plan.shape.out_plane() * kBlock; }

  /// The channels of a pixel.
  DigitRow pixel(int64_t row, int64_t column) const {
    const ConvGeometry& s = plan.shape;
    return {x + (row * s.in[2] + column) * kBlock, s.in_plane() * kBlock, s.in_channels};
  }
  /// The window of result `place` in the order of packed weights.
  void window(int64_t place, float* out) const {
    const ConvGeometry& s = plan.shape;
    std::fill_n(out, plan.panels.k, 0.0f);
    const int64_t y0 = place / s.out[2] * s.stride[1] - s.pad[1];
    const int64_t x0 = place % s.out[2] * s.stride[2] - s.pad[2];
    for (int64_t i = 0; i < s.kernel[1]; ++i)
      for (int64_t j = 0; j < s.kernel[2]; ++j, out += plan.channels) {
        const int64_t row = y0 + i * s.dilation[1], column = x0 + j * s.dilation[2];
        if (row < 0 || row >= s.in[1] || column < 0 || column >= s.in[2]) continue;
        copy_row(pixel(row, column), out);
      }
  }
};

/// All phases of an image as digits.
void split_phases(const Image& image, const DigitScale& scale, std::byte* digits) {
  const DigitsConv& plan = image.plan;
  const ConvGeometry& s = plan.shape;
  parallel(static_cast<int64_t>(plan.phases.size()) * plan.rows,
           std::max<int64_t>(1, 8192 / (plan.columns * plan.channels)),
           [&](int64_t begin, int64_t end) {
             for (int64_t task = begin; task < end; ++task) {
               const DigitsConv::Phase& phase = plan.phases[static_cast<size_t>(task / plan.rows)];
               const int64_t row = phase.row + task % plan.rows * s.stride[1] - s.pad[1];
               std::byte* to = digits + task * plan.columns * plan.pixel;
               for (int64_t i = 0; i < plan.columns; ++i, to += plan.pixel) {
                 const int64_t column = phase.column + i * s.stride[2] - s.pad[2];
                 const DigitPlaces places{to, 4 * 64, 64};
                 if (row < 0 || row >= s.in[1] || column < 0 || column >= s.in[2])
                   clear_digits(s.in_channels, places);
                 else
                   split_digits_as(image.pixel(row, column), scale, places);
               }
             }
           });
}

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
    if (image.e.residual != nullptr) {
      result.init = image.e.residual + (linear ? begin * kBlock : 0);
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

/// How the product is cut: blocks of rows, and panels in groups where threads share them.
struct Cut {
  int64_t results, rows, blocks, groups;
  int64_t grain = 1;  ///< of these that a thread takes at least

  Cut(const DigitsConv& plan) : results(plan.results()) {
    const ConvGeometry& s = plan.shape;
    // What takes some 20 microseconds is not shared: what one thread has made the other would
    // fetch.
    constexpr int64_t kSmall = 2'000'000;
    const bool alone = s.out_plane() * s.depth() * s.out_channels <= kSmall;
    const int64_t threads = alone ? 1 : thread_count(), panels = plan.panels.panels();
    // Weights that stay near are used for some rows after the other, of which each thread has its
    // own.
    const bool apart = plan.panels.bytes() <= near_bytes() && results >= 48 * threads;
    rows = digits_block(results, apart ? threads : 1);
    blocks = (results + rows - 1) / rows;
    groups = apart || threads == 1 ? 1 : std::clamp<int64_t>(8 * threads / blocks, 1, panels);
    if (alone) grain = blocks;
  }
  int64_t rows_at(int64_t block) const { return std::min(rows, results - block * rows); }
};

/// What a run needs of its scratch.
struct Room {
  float* scales;
  std::byte* digits;
};

/// Each pixel is a row.
void run_pointwise(const Image& image, const std::byte* matrix, const Room& room) {
  const DigitsConv& plan = image.plan;
  const ConvGeometry& s = plan.shape;
  const Cut cut(plan);
  const int64_t tile_bytes = digit_tile_bytes(s.in_channels);
  const int64_t panels = plan.panels.panels(),
                tiles = (cut.results + kDigitsRows - 1) / kDigitsRows;
  // Tiles [begin, end).
  const auto split = [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kDigitsRows;
    split_tiles(std::min(cut.results, end * kDigitsRows) - first, s.in_channels,
                room.digits + begin * tile_bytes, room.scales + first, [&](int64_t i) {
                  const int64_t r = first + i;
                  return image.pixel(r / s.out[2] * s.stride[1], r % s.out[2] * s.stride[2]);
                });
  };
  if (cut.groups > 1) parallel(tiles, std::max<int64_t>(1, 1024 / plan.channels), split);
  share_products(
      cut.blocks, cut.groups, panels,
      [&](int64_t block, int64_t from, int64_t to) {
        const int64_t row = block * cut.rows, count = cut.rows_at(block), tile = row / kDigitsRows;
        if (cut.groups == 1) split(tile, tile + (count + kDigitsRows - 1) / kDigitsRows);
        const DigitRows a{.digits = room.digits + tile * tile_bytes,
                          .tile = tile_bytes,
                          .scales = room.scales + row};
        Rows{image, row, count}.multiply(a, matrix, from, to);
      },
      cut.grain);
}

void run_windows(const Image& image, const std::byte* matrix, const Room& room) {
  const DigitsConv& plan = image.plan;
  const ConvGeometry& s = plan.shape;
  const Cut cut(plan);
  const int64_t panels = plan.panels.panels();
  const DigitScale scale = digits_scale(image.x, s.in_channels, s.in_plane());
  if (scale.scale > 0) split_phases(image, scale, room.digits);
  for (int64_t r = 0; r < cut.results; ++r)
    room.scales[r] = plan.places[static_cast<size_t>(r)] < 0 ? 0 : scale.scale;
  share_products(
      cut.blocks, cut.groups, panels,
      [&](int64_t block, int64_t from, int64_t to) {
        const int64_t row = block * cut.rows;
        const DigitRows a{.digits = room.digits + row * plan.pixel,
                          .tile = kDigitsRows * plan.pixel,
                          .line = plan.pixel,
                          .digit = 64,
                          .steps = plan.steps.data(),
                          .scales = room.scales + row,
                          .places = plan.places.data() + row};
        Rows{image, row, cut.rows_at(block)}.multiply(a, matrix, from, to);
      },
      cut.grain);
}

}  // namespace

int64_t DigitsConv::results() const {
  return pointwise() ? shape.out_plane() : static_cast<int64_t>(places.size());
}

bool digits_conv_fits(const ConvGeometry& s) {
  const int64_t channels = round_up(s.in_channels, kDigitsDepth);
  // Groups of whole blocks lie as images do.
  const bool apart = s.in_channels % kBlock == 0 && s.out_channels % kBlock == 0;
  // What an input's digits take to make is repaid by the outputs of all positions of the kernel.
  const int64_t fewest = s.taps() > 2 ? 64 : 96;
  return digits_fit(s.out_channels, channels) && (s.groups == 1 || apart) && s.kernel[0] == 1 &&
         s.in[0] == 1 && s.out_channels >= fewest && s.in_channels * 4 >= channels * 3 &&
         s.taps() * channels >= 128 && s.out_plane() >= 48;
}

DigitsConv plan_digits_conv(const ConvGeometry& shape) {
  DigitsConv plan;
  plan.shape = shape;
  plan.channels = round_up(shape.in_channels, kDigitsDepth);
  plan.panels = {shape.taps() * plan.channels, shape.out_channels};
  plan.weight_bytes = static_cast<size_t>(kHeader + shape.groups * plan.panels.bytes());
  plan.pixel = plan.channels * 4;
  if (plan.pointwise()) {
    plan.scratch_bytes =
        static_cast<size_t>(round_up(plan.results(), kDigitsRows) * (plan.pixel + 4));
    return plan;
  }
  // Sixteen pixels are read at a time: not all from one set of the caches.
  if (plan.pixel % 1024 == 0) plan.pixel += 64;
  plan_positions(plan);
  const int64_t image =
      static_cast<int64_t>(plan.phases.size()) * plan.rows * plan.columns * plan.pixel;
  plan.scratch_bytes = static_cast<size_t>(image + kDigitsRows * plan.pixel +
                                           round_up(plan.results(), kDigitsRows) * 4);
  return plan;
}

void pack_digits_conv(const DigitsConv& plan, const float* w, std::byte* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t taps = s.taps(), depth = s.in_channels * taps, group = s.out_channels * depth;
  std::byte* const matrices = packed + kHeader;
  bool held = true;
  for (int64_t g = 0; g < s.groups && held; ++g)
    held = digits_of(reinterpret_cast<const std::byte*>(w + g * group), depth, s.out_channels, true,
                     {}, reinterpret_cast<float*>(matrices + g * plan.panels.bytes()));
  std::memset(packed, 0, kHeader);
  packed[0] = static_cast<std::byte>(held);
  if (!held) return;
  const int64_t panels = plan.panels.panels();
  parallel(s.groups * panels, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> rows(static_cast<size_t>(plan.channels * kDigitsWidth));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t g = task / panels, panel = task % panels, first = panel * kDigitsWidth;
      const int64_t outputs = std::min(kDigitsWidth, s.out_channels - first);
      const float* const from = w + g * group + first * depth;
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t o = 0; o < outputs; ++o)
          for (int64_t c = 0; c < s.in_channels; ++c)
            rows[static_cast<size_t>(c * kDigitsWidth + o)] = from[o * depth + c * taps + t];
        digits_pack(rows.data(), t * plan.channels, plan.channels, plan.panels, panel,
                    matrices + g * plan.panels.bytes());
      }
    }
  });
}

bool digits_conv_packed(const std::byte* packed) { return packed[0] != std::byte{0}; }

void run_digits_conv(const DigitsConv& plan, const float* x, const std::byte* packed, float* y,
                     const ConvEpilogue& epilogue, std::byte* scratch) {
  const ConvGeometry& s = plan.shape;
  const int64_t in = blocks_of(s.in_channels) * s.in_plane() * kBlock;
  const int64_t out = blocks_of(s.out_channels) * s.out_plane() * kBlock;
  const Room room{reinterpret_cast<float*>(scratch),
                  scratch + round_up(plan.results(), kDigitsRows) * 4};
  for (int64_t i = 0; i < s.batch * s.groups; ++i) {
    const int64_t group = i % s.groups;
    ConvEpilogue own = epilogue;
    if (own.bias != nullptr) own.bias += group * s.out_channels;
    if (own.residual != nullptr) own.residual += i * out;
    const Image image{plan, x + i * in, y + i * out, own};
    const std::byte* const matrix = packed + kHeader + group * plan.panels.bytes();
    (plan.pointwise() ? run_pointwise : run_windows)(image, matrix, room);
  }
}

}  // namespace tombolo
