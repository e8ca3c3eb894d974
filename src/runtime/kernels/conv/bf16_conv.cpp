// Convolution over blocked channels by products of bf16.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

/// Whether the taps of a row of the kernel lie side by side in the image: always in one that is
/// copied from a plain input, which is not split by stride.
bool whole_rows(const ConvGeometry& s, bool plain) {
  return plain || (s.stride[2] == 1 && (s.dilation[2] == 1 || s.kernel[2] == 1));
}

/// Whether each column of the kernel has a phase of its own, so that no pixels lie between rows of
/// results: where what those cost is more than to round some pixels again.
bool shifts_columns(const Bf16Conv& plan) {
  const ConvGeometry& s = plan.shape;
  if (plan.plain || whole_rows(s, false) || bf16_use_amx(s.out_plane())) return false;
  const int64_t between = (s.extent(2) - 1) / s.stride[2];
  const int64_t saved = (s.out[1] - 1) * between * s.depth() * s.out_channels;
  const int64_t columns = std::min(s.stride[2], s.kernel[2]) * (s.out[2] + between);
  const int64_t more = std::min(s.stride[1], s.kernel[1]) * (s.out[1] + between) *
                       (s.kernel[2] * s.out[2] - columns);
  constexpr int64_t kNumber = 16;  // products that take as long as to round one
  return saved > more * s.in_channels * kNumber;
}

/// The taps, and the phases of the image that they need.
void plan_taps(Bf16Conv& plan) {
  const ConvGeometry& s = plan.shape;
  if (plan.plain) {
    plan.rows = (s.out[1] - 1) * s.stride[1] + s.extent(1);
    plan.columns = (s.out[2] - 1) * s.stride[2] + s.extent(2);
    plan.phases = {{0, 0}};
    plan.product.offsets.clear();
    for (int64_t i = 0; i < s.kernel[1]; ++i)
      plan.product.offsets.push_back(i * s.dilation[1] * plan.columns * plan.pixel);
    return;
  }
  plan.rows = s.out[1] + (s.extent(1) - 1) / s.stride[1];
  const bool shifts = shifts_columns(plan);
  plan.columns = s.out[2] + (shifts ? 0 : (s.extent(2) - 1) / s.stride[2]);
  // The padding before a row is that behind the one above it, too.
  if (s.stride[2] == 1)
    plan.shared = std::clamp<int64_t>(std::min(plan.columns - s.pad[2] - s.in[2], s.extent(2) - 1),
                                      0, s.pad[2]);
  plan.columns -= plan.shared;
  const int64_t pixel = plan.pixel;
  plan.product.offsets.clear();
  for (int64_t i = 0; i < s.kernel[1]; ++i)
    for (int64_t j = 0; j < (whole_rows(s, false) ? 1 : s.kernel[2]); ++j) {
      const int64_t y = i * s.dilation[1], x = j * s.dilation[2];
      const int64_t row = y % s.stride[1], column = shifts ? x : x % s.stride[2];
      auto& phases = plan.phases;
      auto found = std::find_if(phases.begin(), phases.end(), [&](const Bf16Conv::Phase& p) {
        return p.row == row && p.column == column;
      });
      if (found == phases.end()) found = phases.insert(found, {row, column});
      plan.product.offsets.push_back(((found - phases.begin()) * plan.rows * plan.columns +
                                      y / s.stride[1] * plan.columns + (x - column) / s.stride[2]) *
                                     pixel);
    }
}

/// Each stretch once for each product of parts: of the image the first, the second and, as weights
/// have a second part, the first again.
void plan_parts(Bf16Conv& plan) {
  if (plan.parts == Bf16Parts::kRounded) return;
  QProduct& p = plan.product;
  const std::vector<int64_t> first = std::move(p.offsets);
  p.offsets.clear();
  int64_t stretch = 0;  // of weights
  for (const int64_t offset : first) {
    p.offsets.insert(p.offsets.end(), {offset, offset + plan.part_bytes()});
    p.b_stretches.insert(p.b_stretches.end(), {stretch, stretch});
    if (plan.weight_parts() == 2) {
      p.offsets.push_back(offset);
      p.b_stretches.push_back(stretch + 1);
    }
    stretch += plan.weight_parts();
  }
}

/// One row of pixels after the other; nobody reads the results of those between them.
void plan_rows(Bf16Conv& plan) {
  const ConvGeometry& s = plan.shape;
  QProduct& p = plan.product;
  const int64_t width = s.out[2];
  if (plan.plain) {
    p.amx = bf16_use_amx(width);
    for (int64_t y = 0; y < s.out[1]; ++y)
      p.add_rows(y * s.stride[1] * plan.columns * plan.pixel, width, bf16_tile_rows(width),
                 [&](int64_t at, int32_t rows) {
                   p.runs.push_back({0, rows, y * width + at});
                 });
    return;
  }
  const int64_t count = (s.out[1] - 1) * plan.columns + width;
  p.amx = bf16_use_amx(count);
  p.add_rows(0, count, bf16_tile_rows(count), [&](int64_t at, int32_t rows) {
    if (plan.columns == width) {
      p.runs.push_back({0, rows, at});
      return;
    }
    for (int64_t i = 0; i < rows;) {
      const int64_t row = (at + i) / plan.columns, column = (at + i) % plan.columns;
      const int64_t n = std::min(rows - i, plan.columns - column);
      if (column < width)
        p.runs.push_back({static_cast<int32_t>(i),
                          static_cast<int32_t>(std::min(n, width - column)), row * width + column});
      i += n;
    }
  });
}

/// Pixels of blocked channels, `step` floats apart.
struct BlockedPixels {
  const float* x;
  int64_t plane, step, count;
};

/// `channels` of each pixel and zeros up to `width`, to places `out_step` bytes apart. `rest`:
/// bytes to what rounding took off, or 0.
void round_blocks(const BlockedPixels& pixels, int64_t channels, int64_t width, float scale,
                  std::byte* out, int64_t rest, int64_t out_step) {
  const auto [x, plane, step, count] = pixels;
  if (rest == 0 && has_f16_products())
    return f16_blocks(x, plane, step, count, channels, width, scale, out, out_step);
  for (int64_t c = 0; c < width; c += kBlock, out += kBlock * 2) {
    // Behind the last block there is nothing to read.
    const float* from = x + std::min(c / kBlock, blocks_of(channels) - 1) * plane;
    const int64_t some = std::clamp<int64_t>(channels - c, 0, kBlock);
    const int64_t wide = std::min(width - c, kBlock);
    rest != 0 ? bf16_pixels_and_rest(from, step, count, some, wide, out, out + rest, out_step)
              : bf16_pixels(from, step, count, some, wide, out, out_step);
  }
}

/// Channels of one image, [block][row][column][16], as the phases.
void copy_phases(const Bf16Conv& plan, const float* x, float scale, std::byte* image) {
  const ConvGeometry& s = plan.shape;
  const int64_t pixel = plan.pixel, row_bytes = plan.columns * pixel;
  const int64_t plane = s.in_plane() * kBlock;
  const auto rows = static_cast<int64_t>(plan.phases.size()) * plan.rows;
  parallel(rows, std::max<int64_t>(1, 32768 / row_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Bf16Conv::Phase& phase = plan.phases[static_cast<size_t>(task / plan.rows)];
      const int64_t y = phase.row + task % plan.rows * s.stride[1] - s.pad[1];
      const int64_t x0 = phase.column - s.pad[2];
      std::byte* to = image + task * row_bytes;
      const bool two = plan.parts != Bf16Parts::kRounded;
      const int64_t behind = task + 1 == rows ? plan.shared : 0;  // which no row follows
      const auto clear = [&](int64_t at, int64_t count) {
        std::memset(to + at * pixel, 0, static_cast<size_t>(count * pixel));
        if (two)
          std::memset(to + plan.part_bytes() + at * pixel, 0, static_cast<size_t>(count * pixel));
      };
      // Columns [from, until) are inside.
      const int64_t from =
          std::clamp<int64_t>((-x0 + s.stride[2] - 1) / s.stride[2], 0, plan.columns);
      const int64_t until =
          std::clamp<int64_t>((s.in[2] - x0 + s.stride[2] - 1) / s.stride[2], from, plan.columns);
      if (y < 0 || y >= s.in[1] || from == until) {
        clear(0, plan.columns + behind);
        continue;
      }
      clear(0, from);
      clear(until, plan.columns + behind - until);
      const float* line = x + (y * s.in[2] + x0 + from * s.stride[2]) * kBlock;
      round_blocks({line, plane, s.stride[2] * kBlock, until - from}, s.in_channels, plan.channels,
                   scale, to + from * pixel, two ? plan.part_bytes() : 0, pixel);
    }
  });
}

/// Planes of one image, [channel][row][column], as one phase.
void copy_planes(const Bf16Conv& plan, const float* x, float scale, std::byte* image) {
  constexpr int64_t kPixels = kBf16Panel;  // that are rounded together
  const ConvGeometry& s = plan.shape;
  const int64_t row_bytes = plan.columns * plan.pixel, pairs = plan.channels / 2;
  parallel(plan.rows, std::max<int64_t>(1, 32768 / row_bytes), [&](int64_t begin, int64_t end) {
    std::vector<float> floats(static_cast<size_t>(plan.channels * kPixels));
    std::vector<uint32_t> rounded(static_cast<size_t>(pairs * kPixels));
    for (int64_t row = begin; row < end; ++row) {
      std::byte* to = image + row * row_bytes;
      std::memset(to, 0, static_cast<size_t>(row_bytes));
      const int64_t y = row - s.pad[1], from = std::max<int64_t>(0, -s.pad[2]);
      const int64_t until = std::min(s.in[2], plan.columns - s.pad[2]);
      if (y < 0 || y >= s.in[1]) continue;
      for (int64_t at = from; at < until; at += kPixels) {
        const int64_t count = std::min(kPixels, until - at);
        for (int64_t c = 0; c < s.in_channels; ++c)
          std::copy_n(x + c * s.in_plane() + y * s.in[2] + at, count, floats.data() + c * kPixels);
        auto* const words = reinterpret_cast<std::byte*>(rounded.data());
        has_f16_products() ? f16_pair_rows(floats.data(), plan.channels, scale, words)
                           : bf16_pair_rows(floats.data(), plan.channels, words);
        std::byte* pixel = to + (s.pad[2] + at) * plan.pixel;
        for (int64_t i = 0; i < count; ++i, pixel += plan.pixel)
          for (int64_t p = 0; p < pairs; ++p)
            std::memcpy(pixel + p * 4, words + (p * kPixels + i) * 4, 4);
      }
    }
  });
}

/// Of the channels that there are: what fills up the last block may be anything.
float largest_of_image(const ConvGeometry& s, const float* x) {
  const int64_t whole = s.in_channels / kBlock, rest = s.in_channels % kBlock;
  const int64_t plane = s.in_plane() * kBlock;
  const float largest = whole > 0 ? largest_of(x, plane, whole, plane) : 0;
  return rest == 0 ? largest
                   : std::max(largest, largest_of(x + whole * plane, kBlock, s.in_plane(), rest));
}

/// What rounding to bf16 takes off.
void take_bf16(std::vector<float>& numbers) {
  std::vector<uint16_t> halves(numbers.size());
  std::vector<float> rounded(numbers.size());
  const auto n = static_cast<int64_t>(numbers.size());
  f32_to_bf16(numbers.data(), halves.data(), n);
  bf16_to_f32(halves.data(), rounded.data(), n);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = std::isfinite(rounded[i]) ? numbers[i] - rounded[i] : 0;
}

}  // namespace

void Bf16Blocks::finish(const void* argument, const float* sums, int64_t row, int64_t rows,
                        int64_t column, int64_t columns) {
  const auto& self = *static_cast<const Bf16Blocks*>(argument);
  for (int64_t c = 0; c < columns; c += kBlock) {
    const int64_t at = (column + c) / kBlock * self.plane + row * kBlock;
    bf16_store_block(sums + c, rows, self.e.bias != nullptr ? self.e.bias + column + c : nullptr,
                     self.residual != nullptr ? self.residual + at : nullptr, self.e.activation,
                     self.y + at);
  }
}

float Bf16Pixels::round(const void* argument, int64_t row, int64_t rows, std::byte* to,
                        int64_t row_bytes) {
  const auto& self = *static_cast<const Bf16Pixels*>(argument);
  const auto each_line = [&](auto&& fn) {
    for (int64_t i = 0; i < rows;) {
      const int64_t line = (row + i) / self.line_pixels, at = (row + i) % self.line_pixels;
      const int64_t count = std::min(rows - i, self.line_pixels - at);
      fn(self.x + line * self.line + at * self.step, count, to + i * row_bytes);
      i += count;
    }
  };
  float scale = 1;
  if (has_f16_products()) {
    float largest = 0;
    each_line([&](const float* x, int64_t count, std::byte*) {
      largest =
          std::max(largest, largest_of_pixels(x, self.step, count, self.channels, self.plane));
    });
    scale = f16_scale(largest);
  }
  each_line([&](const float* x, int64_t count, std::byte* out) {
    round_blocks({x, self.plane, self.step, count}, self.channels, self.width, scale, out, 0,
                 row_bytes);
  });
  return scale;
}

bool bf16_conv_fits(const ConvGeometry& s, bool plain) {
  if (s.groups != 1 || s.kernel[0] != 1 || s.in[0] != 1 || s.out_plane() < 1) return false;
  constexpr int64_t kFewest = kBlock / 2;  // that repay a stretch
  if (!plain) return s.in_channels >= kFewest;
  // Of few channels the taps of a row are one.
  return s.dilation[2] == 1 && s.in_channels <= kFewest && s.in_channels * s.kernel[2] >= kFewest;
}

bool bf16_conv_pays(const ConvGeometry& s, bool plain) {
  const int64_t channels = plain ? round_up(s.in_channels, 2) : s.in_channels;
  return bf16_pays(
      {s.out_plane(), s.depth(), s.out_channels, channels * s.in_plane(), channels * s.taps()});
}

Bf16Conv plan_bf16_conv(const ConvGeometry& shape, Bf16Parts parts, bool plain) {
  Bf16Conv plan;
  plan.plain = plain;
  plan.shape = shape;
  plan.parts = parts;
  const int64_t taps = whole_rows(shape, plain) ? shape.kernel[2] : 1;
  plan.product.run = bf16_stretch(shape.in_channels * taps, 2 * taps);
  plan.channels = plan.product.run / taps;
  plan.pixel = plan.channels * 2;
  // Sixteen pixels are read at a time: not all from one set of the caches.
  if (taps == 1 && plan.pixel % 1024 == 0) plan.pixel += 64;
  plan_taps(plan);
  plan_parts(plan);
  plan.product.n = blocks_of(shape.out_channels) * kBlock;
  plan.product.lda = plan.pixel * (plain ? shape.stride[2] : 1);
  plan_rows(plan);
  plan.pointwise = !plain && !plan.product.amx && parts == Bf16Parts::kRounded &&
                   shape.taps() == 1 && shape.pad[1] == 0 && shape.pad[2] == 0 &&
                   plan.columns == shape.out[2];
  const int64_t stretches = plan.product.stretches_of_b();
  const int64_t panels = (plan.product.n + kBf16Panel - 1) / kBf16Panel;
  // With a line for their scale.
  plan.weight_bytes =
      static_cast<size_t>(panels * kBf16Panel * stretches * plan.product.run * 2 + kScaleBytes);
  if (plan.pointwise) return plan;
  // Tiles are read whole.
  const int64_t image = plan.part_bytes() * (parts == Bf16Parts::kRounded ? 1 : 2);
  plan.image_bytes = static_cast<size_t>(image + 32 * plan.pixel + 4096);
  return plan;
}

void pack_bf16_conv(const Bf16Conv& plan, const float* w, std::byte* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t run = plan.product.run, together = run / plan.channels, taps = s.taps();
  const int64_t stretches = plan.product.stretches_of_b();
  const int64_t panels = (plan.product.n + kBf16Panel - 1) / kBf16Panel;
  const int64_t stretch_bytes = run * 2 * kBf16Panel;
  const bool f16 = has_f16_products();
  const float scale = f16 ? f16_scale(largest_finite(w, s.out_channels * s.in_channels * taps)) : 1;
  put_scale(scale, packed + plan.weight_bytes - kScaleBytes);
  const int64_t parts = plan.weight_parts();
  parallel(panels, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> rows(static_cast<size_t>(run * kBf16Panel));
    for (int64_t p = begin; p < end; ++p)
      for (int64_t stretch = 0; stretch < stretches; stretch += parts) {
        std::fill(rows.begin(), rows.end(), 0.0f);
        const int64_t outputs = std::min(kBf16Panel, s.out_channels - p * kBf16Panel);
        for (int64_t o = 0; o < outputs; ++o) {
          const float* from =
              w + (p * kBf16Panel + o) * s.in_channels * taps + stretch / parts * together;
          for (int64_t t = 0; t < together; ++t)
            for (int64_t c = 0; c < s.in_channels; ++c)
              rows[static_cast<size_t>((t * plan.channels + c) * kBf16Panel + o)] =
                  from[c * taps + t];
        }
        std::byte* to = packed + (p * stretches + stretch) * stretch_bytes;
        f16 ? f16_pair_rows(rows.data(), run, scale, to) : bf16_pair_rows(rows.data(), run, to);
        if (parts == 2) {
          take_bf16(rows);
          bf16_pair_rows(rows.data(), run, to + stretch_bytes);
        }
      }
  });
}

void run_bf16_conv(const Bf16Conv& plan, const float* x, const std::byte* packed, float* y,
                   const ConvEpilogue& epilogue, std::byte* image) {
  const ConvGeometry& s = plan.shape;
  const int64_t in =
      (plan.plain ? s.in_channels : blocks_of(s.in_channels) * kBlock) * s.in_plane();
  const int64_t plane = s.out_plane() * kBlock, out = blocks_of(s.out_channels) * plane;
  const float weights = read_scale(packed + plan.weight_bytes - kScaleBytes);
  const bool flat = s.stride[1] == 1 && s.stride[2] == 1;  // one line
  for (int64_t n = 0; n < s.batch; ++n) {
    const Bf16Blocks result{y + n * out, plane, epilogue,
                            epilogue.residual != nullptr ? epilogue.residual + n * out : nullptr};
    const Bf16Finish finish{&Bf16Blocks::finish, &result,
                            epilogue.activation.tiled() ? &result : nullptr};
    if (plan.pointwise) {
      const Bf16Pixels pixels{.x = x + n * in,
                              .plane = s.in_plane() * kBlock,
                              .channels = s.in_channels,
                              .width = plan.channels,
                              .line_pixels = flat ? s.out_plane() : s.out[2],
                              .step = s.stride[2] * kBlock,
                              .line = s.stride[1] * s.in[2] * kBlock};
      bf16_rows_product(plan.product, {&Bf16Pixels::round, &pixels}, packed, weights, finish);
      continue;
    }
    float own = 1;
    if (has_f16_products())
      own = f16_scale(plan.plain ? largest_of(x + n * in, in, 1, in)
                                 : largest_of_image(s, x + n * in));
    (plan.plain ? copy_planes : copy_phases)(plan, x + n * in, own, image);
    bf16_product(plan.product, image, packed, {.all = scale_of_sums(own, weights)}, finish);
  }
}

}  // namespace tombolo
