#include "runtime/kernels/conv/digits_conv.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

constexpr int64_t kFewestOfParts = 8;  // steps of inputs that are cut into parts
constexpr int64_t kHeader = 64;        // bytes before the matrix: whether it is there

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
  /// Of results from `place` on.
  DigitResult result(int64_t place) const {
    const int64_t at = place * kBlock;
    DigitResult result{.c = y + at, .ldc = kBlock, .plane = out_plane()};
    if (e.residual != nullptr) {
      result.init = e.residual + at;
      result.ldi = kBlock;
      result.init_plane = out_plane();
    }
    result.column_bias = e.bias;
    result.clamp = e.activation.kind == Activation::Kind::kClamp;
    result.lo = e.activation.alpha;
    result.hi = e.activation.beta;
    return result;
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
    DigitResult result = image.result(0);
    if (!image.e.activation.tiled()) {
      result.post = &finish;
      result.argument = this;
    }
    digits_product(a, count, b, panels, result, panels.steps(), from, to);
  }
};

constexpr int64_t parts_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/// Products of one image.
int64_t products_of(const ConvGeometry& s) { return s.out_plane() * s.depth() * s.out_channels; }
// What takes some 20 microseconds is not shared: what one thread has made the other would fetch.
constexpr int64_t kSmall = 2'000'000;  // products
/// Whether each image is one thread's: small ones, and as many as threads share out evenly.
bool images_alone(const ConvGeometry& s) {
  const int64_t images = s.batch * s.groups, threads = thread_count();
  return products_of(s) <= kSmall || images >= 4 * threads ||
         (threads <= kFewThreads && images % threads == 0);
}

/// How the product is cut: blocks of rows, and panels in groups where threads share them.
struct Cut {
  int64_t results, rows, blocks, groups = 1;
  int64_t grain = 1;    ///< of these that a thread takes at least
  bool shared = false;  ///< threads read digits that others have made

  explicit Cut(const DigitsConv& plan) : results(plan.results()) {
    const ConvGeometry& s = plan.shape;
    const bool alone = images_alone(s);
    const int64_t threads = alone ? 1 : thread_count();
    // Weights that stay near are used for some rows after the other, of which each thread has its
    // own.
    const bool apart =
        plan.parts == 1 && plan.panels.bytes() <= near_bytes() && results >= 48 * threads;
    rows = digits_block(results, apart ? threads : 1);
    // The same pixels for each as other layers give it.
    if (apart) rows = parts_of(results, round_up(parts_of(results, rows), threads));
    const int64_t halves = plan.panels.halves();
    if (threads > kFewThreads && plan.parts == 1) {
      // Whole tiles, some blocks for each; where panels are few, each has some rows of them.
      constexpr int64_t kTasks = 3, kFewestRows = 4 * kDigitsRows, kLeastRows = 2 * kDigitsRows;
      const int64_t each = std::min<int64_t>(4, results / threads / kFewestRows);
      if (apart && each > 1) {
        rows = std::min(rows, results / (threads * each) / kDigitsRows * kDigitsRows);
      } else if (!apart) {
        const int64_t most = parts_of(results, parts_of(kTasks * threads, parts_of(halves, 2)));
        rows = std::min(rows, std::max(kLeastRows, round_up(most, kDigitsRows)));
      }
    }
    blocks = parts_of(results, rows);
    if (threads > 1 && !apart)
      groups = panel_groups(blocks, halves);
    else if (threads > kFewThreads)
      groups = std::min(halves, parts_of(2 * threads, blocks));
    if (alone) grain = blocks * plan.parts;
    // To make the digits of a number takes as long as so many of its products, and to fetch them
    // about as long.
    constexpr int64_t kProductsOfDigits = 40;
    shared = groups > 1 && plan.parts == 1 && 2 * kProductsOfDigits * threads > s.out_channels;
  }
  int64_t rows_at(int64_t block) const { return std::min(rows, results - block * rows); }
};

/// A number for a product, and whether piece `piece` of its digits is what this thread made last;
/// notes that it is from now on.
uint64_t next_run() {
  static std::atomic<uint64_t> runs{0};
  return ++runs;
}
bool has_own_digits(uint64_t run, int64_t piece) {
  thread_local uint64_t last_run = 0;
  thread_local int64_t last_piece = 0;
  const bool there = last_run == run && last_piece == piece;
  last_run = run;
  last_piece = piece;
  return there;
}

/// Rows as digits.
struct Room {
  float* scales;
  std::byte* digits;
};

/// Each pixel is a row.
class Pointwise {
 public:
  /// The results of parts but the first go to `beside`.
  Pointwise(const Image& image, const std::byte* matrix, float* beside)
      : image_(image), matrix_(matrix), beside_(beside), cut_(image.plan), run_(next_run()) {}

  void run() {
    const int64_t halves = image_.plan.panels.halves();
    if (image_.plan.parts > 1) return run_parts();
    if (cut_.shared) split_shared();
    share_products(
        cut_.blocks, cut_.groups, halves,
        [&](int64_t block, int64_t from, int64_t to) {
          const Inputs all{0, image_.plan.shape.in_channels, image_.plan.panels};
          multiply(block, all, cut_.shared ? shared(block) : own(block, all, block),
                   image_.result(block * cut_.rows), from, to);
        },
        cut_.grain);
  }

 private:
  /// Input channels from `first` on, whole steps.
  struct Inputs {
    int64_t first, count;
    DigitPanels panels;
  };
  /// A block's rows as floats.
  struct Floats {
    const Pointwise& run;
    int64_t row, first, count;
    int64_t width;  ///< with channels that only fill up a step
    static const float* at(const void* argument, int64_t row, float* room) {
      const auto& self = *static_cast<const Floats*>(argument);
      copy_row(self.run.input(self.row + row, self.first, self.count), room);
      // B has zeros there, but what lies in the room may be no number.
      std::fill(room + self.count, room + self.width, 0.0f);
      return room;
    }
  };

  DigitRow input(int64_t row, int64_t first, int64_t count) const {
    const ConvGeometry& s = image_.plan.shape;
    DigitRow pixel = image_.pixel(row / s.out[2] * s.stride[1], row % s.out[2] * s.stride[2]);
    pixel.a += first / kBlock * pixel.plane;
    pixel.k = count;
    return pixel;
  }

  int64_t tiles() const { return parts_of(cut_.rows, kDigitsRows); }  ///< of a block
  int64_t block_floats(int64_t k) const { return digit_block_floats(tiles() * kDigitsRows, k); }
  Room room_in(float* floats) const {
    return {floats, reinterpret_cast<std::byte*>(floats + tiles() * kDigitsRows)};
  }
  Room shared(int64_t block) const {
    return room_in(shared_ + block * block_floats(image_.plan.shape.in_channels));
  }

  /// Tiles [begin, end) of a block.
  void split(int64_t block, const Inputs& inputs, const Room& to, int64_t begin,
             int64_t end) const {
    const int64_t first = begin * kDigitsRows;
    const int64_t rows = std::min(cut_.rows_at(block), end * kDigitsRows) - first;
    if (rows <= 0) return;
    split_tiles(rows, inputs.count, to.digits + begin * digit_tile_bytes(inputs.count),
                to.scales + first, [&](int64_t i) {
                  return input(block * cut_.rows + first + i, inputs.first, inputs.count);
                });
  }
  void split_shared() {
    const Inputs all{0, image_.plan.shape.in_channels, image_.plan.panels};
    shared_ = thread_floats(4, static_cast<size_t>(cut_.blocks * block_floats(all.count)));
    parallel(cut_.blocks * tiles(), std::max<int64_t>(1, 1024 / image_.plan.channels),
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 const int64_t block = i / tiles(), tile = i % tiles();
                 split(block, all, shared(block), tile, tile + 1);
               }
             });
  }
  /// In this thread's own room, unless what lies there is `piece` of this run already.
  Room own(int64_t block, const Inputs& inputs, int64_t piece) const {
    const Room to = room_in(thread_floats(4, static_cast<size_t>(block_floats(inputs.count))));
    if (!has_own_digits(run_, piece)) split(block, inputs, to, 0, tiles());
    return to;
  }

  void multiply(int64_t block, const Inputs& inputs, const Room& digits, DigitResult result,
                int64_t from, int64_t to) const {
    const int64_t row = block * cut_.rows, count = cut_.rows_at(block);
    const Floats floats{*this, row, inputs.first, inputs.count, inputs.panels.k};
    const DigitRows a{.digits = digits.digits,
                      .tile = digit_tile_bytes(inputs.count),
                      .scales = digits.scales,
                      .floats = &Floats::at,
                      .argument = &floats};
    const Rows rows{image_, row, count};
    if (image_.plan.parts == 1 && !image_.e.activation.tiled()) {
      result.post = &Rows::finish;
      result.argument = &rows;
    }
    digits_product(a, count, matrix_, inputs.panels, result, inputs.panels.steps(), from, to);
  }

  /// Each part of the inputs by all panels: the first one's product goes where the result will be,
  /// the others' beside it.
  void run_parts() {
    const DigitsConv& plan = image_.plan;
    const int64_t halves = plan.panels.halves(), parts = plan.parts, steps = plan.panels.steps();
    const int64_t threads = cut_.groups > 1 ? thread_count() : 1;
    // Who takes over a piece of a part makes all its digits first.
    const int64_t pieces = threads > kFewThreads ? 4 : 1;
    const int64_t groups = std::min(pieces * ((threads + parts - 1) / parts), halves);
    share_products(
        parts, groups, halves,
        [&](int64_t part, int64_t from, int64_t to) {
          // The first part is the longer one: the thread that shares the work out begins earlier.
          const int64_t begin = (steps * part + parts - 1) / parts;
          const int64_t end = (steps * (part + 1) + parts - 1) / parts;
          Inputs inputs{begin * kDigitsDepth, 0, plan.panels};
          inputs.count = std::min(plan.shape.in_channels, end * kDigitsDepth) - inputs.first;
          inputs.panels.k = inputs.count;
          inputs.panels.skipped = begin;
          inputs.panels.whole = steps;
          DigitResult to_c = image_.result(0);
          to_c.clamp = false;
          if (part > 0) to_c = {.c = result_of(part), .ldc = kBlock, .plane = image_.out_plane()};
          multiply(0, inputs, own(0, inputs, part), to_c, from, to);
        },
        cut_.grain);
    constexpr int64_t kLeast = 4096;  // floats
    parallel(blocks_of(plan.shape.out_channels), std::max<int64_t>(1, kLeast / image_.out_plane()),
             [&](int64_t from, int64_t to) { add_parts(from, to); });
  }
  float* result_of(int64_t part) const {
    return beside_ + (part - 1) * blocks_of(image_.plan.shape.out_channels) * image_.out_plane();
  }
  /// Of blocks [from, to) of the result.
  void add_parts(int64_t from, int64_t to) const {
    const DigitsConv& plan = image_.plan;
    const Activation& act = image_.e.activation;
    const bool clamp = act.kind == Activation::Kind::kClamp;
    constexpr float kNone = std::numeric_limits<float>::infinity();
    const float lo = clamp ? act.alpha : -kNone, hi = clamp ? act.beta : kNone;
    const int64_t begin = from * image_.out_plane(), n = (to - from) * image_.out_plane();
    float* const y = image_.y + begin;
    for (int64_t part = 1; part < plan.parts; ++part) {
      const bool last = part + 1 == plan.parts;
      const float low = last ? lo : -kNone, high = last ? hi : kNone;
      const float* const other = result_of(part) + begin;
      for (int64_t i = 0; i < n; ++i) {
        const float sum = y[i] + other[i], above = sum < low ? low : sum;  // a NaN stays
        y[i] = high < above ? high : above;
      }
    }
    if (!act.tiled()) apply_activation(act, y, n);
  }

  const Image& image_;
  const std::byte* const matrix_;
  float* const beside_;
  float* shared_ = nullptr;  ///< digits that all threads read
  const Cut cut_;
  const uint64_t run_;
};

void run_windows(const Image& image, const std::byte* matrix, const Room& room) {
  const DigitsConv& plan = image.plan;
  const ConvGeometry& s = plan.shape;
  const Cut cut(plan);
  const int64_t halves = plan.panels.halves();
  const DigitScale scale = digits_scale(image.x, s.in_channels, s.in_plane());
  if (scale.scale > 0) split_phases(image, scale, room.digits);
  for (int64_t r = 0; r < cut.results; ++r)
    room.scales[r] = plan.places[static_cast<size_t>(r)] < 0 ? 0 : scale.scale;
  share_products(
      cut.blocks, cut.groups, halves,
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

/// What an input's digits take to make is repaid by the outputs of all positions of the kernel.
bool outputs_repay(const ConvGeometry& s, int64_t channels) {
  if (s.taps() > 2) return s.out_channels >= 64;
  // Products of floats take twice as long, but there are none of channels that only fill up a step.
  // To make the digits of a number takes as long as so many products.
  const int64_t products = s.in_channels < 128 ? 120 : 95;
  return s.out_channels * (2 * s.in_channels - channels) > products * channels;
}

}  // namespace

int64_t DigitsConv::results() const {
  return pointwise() ? shape.out_plane() : static_cast<int64_t>(places.size());
}

bool digits_conv_fits(const ConvGeometry& s) {
  const int64_t channels = round_up(s.in_channels, kDigitsDepth);
  // Groups of whole blocks lie as images do.
  const bool apart = s.in_channels % kBlock == 0 && s.out_channels % kBlock == 0;
  return digits_fit(s.out_channels, channels) && (s.groups == 1 || apart) && s.kernel[0] == 1 &&
         s.in[0] == 1 && s.in_channels * 4 >= channels * 3 && s.taps() * channels >= 128 &&
         s.out_plane() >= 48 && outputs_repay(s, channels);
}

DigitsConv plan_digits_conv(const ConvGeometry& shape) {
  DigitsConv plan;
  plan.shape = shape;
  plan.channels = round_up(shape.in_channels, kDigitsDepth);
  plan.panels = {shape.taps() * plan.channels, shape.out_channels};
  plan.weight_bytes = static_cast<size_t>(kHeader + shape.groups * plan.panels.bytes());
  plan.pixel = plan.channels * 4;
  if (plan.pointwise()) {
    const int64_t results = plan.results();
    // What a projection has of inputs is far more than what it makes of them.
    if (digits_block(results) >= results && plan.channels >= kFewestOfParts * kDigitsDepth &&
        shape.in_channels > shape.out_channels &&
        (results < 96 || plan.panels.bytes() > near_bytes()))
      plan.parts = 2;
    plan.scratch_bytes = static_cast<size_t>((plan.parts - 1) * blocks_of(shape.out_channels) *
                                             kBlock * shape.out_plane()) *
                         sizeof(float);
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
  const auto convolve = [&](int64_t i, std::byte* room) {
    auto* const floats = reinterpret_cast<float*>(room);
    const int64_t group = i % s.groups;
    ConvEpilogue own = epilogue;
    if (own.bias != nullptr) own.bias += group * s.out_channels;
    if (own.residual != nullptr) own.residual += i * out;
    const Image image{plan, x + i * in, y + i * out, own};
    const std::byte* const matrix = packed + kHeader + group * plan.panels.bytes();
    if (plan.pointwise())
      Pointwise(image, matrix, floats).run();
    else
      run_windows(image, matrix, {floats, room + round_up(plan.results(), kDigitsRows) * 4});
  };
  const int64_t images = s.batch * s.groups;
  if (images == 1 || !images_alone(s)) {
    for (int64_t i = 0; i < images; ++i) convolve(i, scratch);
    return;
  }
  parallel(images, parts_of(kSmall / 2, products_of(s)), [&](int64_t begin, int64_t end) {
    std::byte* const room =
        reinterpret_cast<std::byte*>(thread_floats(3, plan.scratch_bytes / sizeof(float) + 1));
    for (int64_t i = begin; i < end; ++i) convolve(i, room);
  });
}

}  // namespace tombolo
