#include "runtime/kernels/quant/qconv_last.h"

#include <algorithm>
#include <cstring>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

/// Whether an image that is not padded has pixels between the rows of results that lie one after
/// the other: a window of one row and several columns does not reach beyond the last ones.
bool has_gaps(const ConvGeometry& g) {
  return g.stride[1] == 1 && g.stride[2] == 1 && (g.out[1] != g.in[1] || g.out[2] != g.in[2]);
}

/// What it takes to multiply so many rows, in rows: two loads beside those of each tile, or whole
/// tiles of AMX.
int64_t cost_of_rows(const QProduct& p, int64_t rows) {
  if (p.amx) return (rows + 15) / 16 * 16;
  const int64_t tile = q_tile_rows(rows, false, *p.inner);
  return rows + 2 * ((rows + tile - 1) / tile);
}

/// Of a copy with shifted columns. Rows that are a stride apart lie one after the other, so that
/// those which a row of the kernel sees do: `phase` is the first row's place within a stride.
struct ShiftedCopy {
  const ConvGeometry& g;

  int64_t phase(int64_t i) const { return i * g.dilation[1] % g.stride[1]; }
  int64_t phase_rows(int64_t p) const {
    int64_t rows = 0;
    for (int64_t i = 0; i < g.kernel[1]; ++i)
      if (phase(i) == p) rows = std::max(rows, i * g.dilation[1] / g.stride[1] + g.out[1]);
    return rows;
  }
  /// Rows of the phases before p, and with p the stride, of all.
  int64_t rows_before(int64_t p) const {
    int64_t rows = 0;
    for (int64_t q = 0; q < p; ++q) rows += phase_rows(q);
    return rows;
  }
  int64_t rows() const { return rows_before(g.stride[1]); }
  int64_t pixels() const { return g.kernel[2] * rows() * g.out[2]; }
  /// Where what position (i, j) sees begins.
  int64_t pixel(int64_t i, int64_t j) const {
    const int64_t row = rows_before(phase(i)) + i * g.dilation[1] / g.stride[1];
    return (j * rows() + row) * g.out[2];
  }
};

/// Of the last panel a tile takes the half alone that has columns, where it can.
int64_t halves_of_panels(const QProduct& p) {
  const int64_t panel = p.inner->panel, last = p.n % panel;
  return 2 * ((p.n + panel - 1) / panel) - (last > 0 && last < p.inner->line_columns ? 1 : 0);
}

/// Products of tiles in rows of groups of k times panels.
int64_t cost_of_product(const QProduct& p) {
  int64_t rows = 0;
  for (const QTileRows& tile : p.tiles) rows += cost_of_rows(p, tile.count);
  return rows * static_cast<int64_t>(p.offsets.size()) * p.inner->groups_of(p.run) *
         halves_of_panels(p) / 2;
}

/// Rows of results that end within a tile leave it with rows that nobody wants, or with fewer than
/// it can have: turns to shifted columns where that costs more than to copy them.
void shift_columns(QConvPlan& plan) {
  const ConvGeometry& g = plan.shape;
  const ShiftedCopy copy{g};
  const int64_t pixel = plan.channels() * plan.element, count = g.out_plane();
  QProduct p;
  p.n = plan.product.n;
  p.inner = plan.product.inner;
  p.amx = plan.product.amx;
  p.a_signed = plan.product.a_signed;
  p.run = g.in_channels;
  p.lda = pixel;
  p.offsets.clear();
  for (int64_t i = 0; i < g.kernel[1]; ++i)
    for (int64_t j = 0; j < g.kernel[2]; ++j) p.offsets.push_back(copy.pixel(i, j) * pixel);
  q_add_lines(p, 0, count, count, count, 0, count);
  const size_t bytes = static_cast<size_t>((copy.pixels() + 32) * pixel + kQImageSlack);
  const int64_t saved =
      g.groups * (cost_of_product(plan.product) / plan.batches - cost_of_product(p));
  const auto more = static_cast<int64_t>(bytes) - static_cast<int64_t>(plan.image_bytes);
  // A row takes a cycle for a group with VNNI, an eighth with AMX; a cycle copies sixteen bytes.
  if (saved * 16 <= more * (p.amx ? 8 : 1)) return;
  plan.product = std::move(p);
  plan.shifted = plan.copy = true;
  plan.run = g.in_channels;
  plan.batches = 1;
  plan.image_bytes = bytes;
  plan.weight_bytes = static_cast<size_t>(g.groups) *
                      q_stretch_bytes(g.taps(), plan.run, g.out_channels, *plan.product.inner);
}

/// Bytes of x as numbers of the copy.
void copy_numbers(const uint8_t* from, int64_t n, int element, uint8_t mask, std::byte* to) {
  if (element == 1) return q_turn_bytes(from, n, mask, reinterpret_cast<uint8_t*>(to));
  auto* numbers = reinterpret_cast<int16_t*>(to);
  for (int64_t i = 0; i < n; ++i) numbers[i] = static_cast<uint8_t>(from[i] ^ mask);
}
/// Pixels of n bytes, whose next in x is `step` bytes away.
void copy_pixels(const uint8_t* from, int64_t step, int64_t pixels, int64_t n, uint8_t mask,
                 std::byte* to) {
  if (n % 8 != 0 || n > 64) {
    for (; pixels > 0; --pixels, from += step, to += n) copy_numbers(from, n, 1, mask, to);
    return;
  }
  const uint64_t turn = mask * uint64_t{0x0101010101010101};
  for (; pixels > 0; --pixels, from += step, to += n)
    for (int64_t i = 0; i < n; i += 8) {
      uint64_t word;
      std::memcpy(&word, from + i, sizeof word);
      word ^= turn;
      std::memcpy(to + i, &word, sizeof word);
    }
}
void fill_numbers(uint8_t value, int64_t n, int element, std::byte* to) {
  if (element == 1)
    std::memset(to, value, static_cast<size_t>(n));
  else
    std::fill_n(reinterpret_cast<int16_t*>(to), n, int16_t{value});
}

void copy_shifted(const QConvPlan& plan, const uint8_t* x, uint8_t zero, std::byte* to) {
  const ConvGeometry& g = plan.shape;
  const ShiftedCopy copy{g};
  const int64_t channels = plan.channels(), rows = copy.rows(), width = g.out[2];
  const int64_t row_bytes = width * channels * plan.element;
  const uint8_t mask = plan.flip ? 0x80 : 0;
  const auto fill = static_cast<uint8_t>(zero ^ mask);
  std::vector<int64_t> sources;  // of each row, the image's
  for (int64_t p = 0; p < g.stride[1]; ++p)
    for (int64_t r = 0; r < copy.phase_rows(p); ++r)
      sources.push_back(r * g.stride[1] + p - g.pad[1]);
  const auto copy_row = [&](int64_t row, int64_t j, std::byte* out) {
    const int64_t y = sources[static_cast<size_t>(row)], left = j * g.dilation[2] - g.pad[2];
    // Results [first, last) see the image, and not what is beside it.
    const int64_t step = g.stride[2];
    const int64_t first = std::clamp<int64_t>((step - 1 - left) / step, 0, width);
    const int64_t last = std::clamp<int64_t>((g.in[2] - left + step - 1) / step, first, width);
    if (y < 0 || y >= g.in[1] || g.in[2] <= left)
      return fill_numbers(fill, width * channels, plan.element, out);
    fill_numbers(fill, first * channels, plan.element, out);
    const int64_t pixel = channels * plan.element;
    const uint8_t* from = x + (y * g.in[2] + first * step + left) * channels;
    if (step != 1 && plan.element == 1) {
      copy_pixels(from, step * channels, last - first, channels, mask, out + first * pixel);
    } else {
      const int64_t pixels = step == 1 ? last - first : 1;
      for (int64_t at = first; at < last; at += pixels, from += step * channels)
        copy_numbers(from, pixels * channels, plan.element, mask, out + at * pixel);
    }
    fill_numbers(fill, (width - last) * channels, plan.element, out + last * pixel);
  };
  parallel(rows * g.kernel[2], std::max<int64_t>(1, 16384 / row_bytes),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) copy_row(i % rows, i / rows, to + i * row_bytes);
           });
}

/// Rows [begin, end) of all slices' rows.
void copy_rows(const QImage& image, const uint8_t* x, uint8_t zero, int64_t begin, int64_t end,
               std::byte* to) {
  const int64_t rows = image.size[1], columns = image.size[2], row = columns * image.channels;
  const uint8_t mask = image.flip ? 0x80 : 0;
  const uint8_t fill = zero ^ mask;
  const int64_t left = std::min(image.before[2], columns) * image.channels;
  const int64_t inside = std::min(image.in[2] * image.channels, row - left);
  for (int64_t r = begin; r < end; ++r, to += row * image.element) {
    const int64_t z = r / rows - image.before[0], y = r % rows - image.before[1];
    if (z < 0 || z >= image.in[0] || y < 0 || y >= image.in[1]) {
      fill_numbers(fill, row, image.element, to);
      continue;
    }
    fill_numbers(fill, left, image.element, to);
    copy_numbers(x + (z * image.in[1] + y) * image.in[2] * image.channels, inside, image.element,
                 mask, to + left * image.element);
    fill_numbers(fill, row - left - inside, image.element, to + (left + inside) * image.element);
  }
}
QImage image_of(const QConvPlan& plan) {
  const ConvGeometry& g = plan.shape;
  return {{g.in[0], g.in[1], g.in[2]},
          {g.pad[0], g.pad[1], g.pad[2]},
          {plan.slices, plan.rows, plan.columns},
          plan.channels(),
          plan.element,
          plan.flip};
}

/// Rows of the product of one group: all pixels, as far as one product takes them.
void plan_rows(QConvPlan& plan) {
  const ConvGeometry& g = plan.shape;
  QProduct& p = plan.product;
  const int64_t height = g.out[1], width = g.out[2];
  p.runs.clear();
  p.tiles.clear();
  const int64_t row_bytes = plan.columns * plan.channels() * plan.element;
  const int64_t slice_bytes = g.stride[0] * plan.rows * row_bytes;
  const bool between = plan.copy || has_gaps(g);
  const int64_t count =
      between ? (height - 1) * plan.columns + width : plan.batches * height * width;
  if (g.stride[1] == 1 && g.stride[2] == 1 &&
      !(between && q_rows_apart(p, height, width, plan.columns))) {
    const int64_t period = between ? plan.columns : count, useful = between ? width : count;
    for (int64_t d = 0; d < g.out[0]; ++d)
      q_add_lines(p, d * slice_bytes, count, period, useful, d * height * useful, useful);
    return;
  }
  for (int64_t n = 0; n < plan.batches; ++n)
    for (int64_t d = 0; d < g.out[0]; ++d)
      for (int64_t y = 0; y < height; ++y)
        q_add_lines(p, d * slice_bytes + (n * plan.rows + y * g.stride[1]) * row_bytes, width,
                    width, width, ((n * g.out[0] + d) * height + y) * width, width);
}

bool is_deep(const ConvGeometry& g) { return g.in[0] != 1 || g.kernel[0] != 1 || g.out[0] != 1; }

/// Rows [begin, end) of the result. x: the first row that they see, of the image that is read.
void depthwise_rows(const QConvPlan& plan, const uint8_t* x, const std::byte* packed,
                    const QFinish& finish, int64_t begin, int64_t end) {
  const ConvGeometry& g = plan.shape;
  const int64_t channels = plan.channels(), block = q_depthwise_block(plan.zeros);
  const int64_t row_bytes = plan.columns * channels, places = plan.places();
  // Of pixels that are channels of one, the last of a row may have been done before.
  const int64_t row_places = g.out[2] * channels;
  const int64_t pixels = row_places / places;
  const int64_t last = row_places % places != 0 ? row_places - places : -1;
  // The block's part of the rows that are read stays in the first cache from tap to tap.
  const uint8_t* taps[256];
  for (int64_t y = begin; y < end; ++y, x += g.stride[1] * row_bytes)
    for (int64_t c = 0; c < places; c += block) {
      int64_t t = 0;
      for (int64_t i = 0; i < g.kernel[1]; ++i)
        for (int64_t j = 0; j < g.kernel[2]; ++j)
          taps[t++] = x + i * g.dilation[1] * row_bytes + j * g.dilation[2] * channels + c;
      auto* const out = static_cast<std::byte*>(finish.out) + y * row_places + c;
      QDepthwise job{taps,
                     t,
                     g.stride[2] * places,
                     pixels,
                     plan.x_signed,
                     packed,
                     c,
                     places,
                     finish.column_add,
                     finish.column_scale,
                     finish.zero_point,
                     finish.least,
                     finish.greatest,
                     out,
                     places};
      q_depthwise(job, plan.zeros);
      if (last < 0) continue;
      for (int64_t i = 0; i < t; ++i) taps[i] += last;
      job.pixels = 1;
      job.out += last;
      q_depthwise(job, plan.zeros);
    }
}

/// Each thread copies the rows that its own results see, a band of them at a time that stays near:
/// what another copied would have to come from its cache, and be waited for.
void run_depthwise(const QConvPlan& plan, const uint8_t* x, uint8_t zero, const std::byte* packed,
                   const QFinish& finish) {
  const ConvGeometry& g = plan.shape;
  const int64_t work = std::max<int64_t>(1, g.out[2] * plan.channels() * g.taps());
  const int64_t row_bytes = plan.columns * plan.channels(), reach = g.extent(1);
  constexpr int64_t kBand = 256 << 10, kLeastRows = 8;  // bytes; and few are copied twice
  const int64_t most =
      std::max(kLeastRows, (kBand / std::max<int64_t>(1, row_bytes) - reach) / g.stride[1]);
  parallel(g.out[1], std::max<int64_t>(1, 200'000 / work), [&](int64_t begin, int64_t end) {
    if (!plan.copy)
      return depthwise_rows(plan, x + begin * g.stride[1] * row_bytes, packed, finish, begin, end);
    for (int64_t y = begin; y < end; y += most) {
      const int64_t until = std::min(end, y + most), rows = (until - y - 1) * g.stride[1] + reach;
      auto* const image = reinterpret_cast<std::byte*>(
          thread_floats(1, (static_cast<size_t>(rows * row_bytes) + plan.row_slack) / 4 + 1));
      copy_rows(image_of(plan), x, zero, y * g.stride[1], y * g.stride[1] + rows, image);
      depthwise_rows(plan, reinterpret_cast<const uint8_t*>(image), packed, finish, y, until);
    }
  });
}

/// sums[i]: of all that output pixel i of a group sees, from the sums of each pixel, for which
/// there is room behind.
void sum_windows(const QConvPlan& plan, const std::byte* x, int32_t* sums) {
  const ConvGeometry& g = plan.shape;
  const int64_t pixels = plan.pixels(), outputs = plan.batches * g.out_plane();
  const bool each = g.taps() == 1 && pixels == outputs;
  int32_t* const of_pixels = each ? sums : sums + outputs;
  q_sum_pixels(x, pixels, plan.channels(), g.in_channels, plan.element, plan.product.a_signed,
               of_pixels);
  if (each) return;
  std::vector<int64_t> taps;
  for (int64_t d = 0; d < g.kernel[0]; ++d)
    for (int64_t i = 0; i < g.kernel[1]; ++i)
      for (int64_t j = 0; j < g.kernel[2]; ++j)
        taps.push_back((d * g.dilation[0] * plan.rows + i * g.dilation[1]) * plan.columns +
                       j * g.dilation[2]);
  const int64_t width = g.out[2], lines = outputs / width;
  parallel(
      lines, std::max<int64_t>(1, 65536 / (width * g.taps())), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const int64_t y = line % g.out[1], z = line / g.out[1];  // slices, or images of one
          q_sum_taps(of_pixels + (z * g.stride[0] * plan.rows + y * g.stride[1]) * plan.columns,
                     taps, width, g.stride[2], sums + line * width);
        }
      });
}

}  // namespace

bool q_rows_apart(const QProduct& p, int64_t height, int64_t width, int64_t period) {
  return height * cost_of_rows(p, width) < cost_of_rows(p, (height - 1) * period + width);
}

void q_add_lines(QProduct& p, int64_t offset, int64_t count, int64_t period, int64_t useful,
                 int64_t to, int64_t to_row) {
  // Lines that go on in A and in the result are one.
  if (useful == period && to_row == period) period = useful = count;
  p.add_rows(offset, count, q_tile_rows(count, p.amx, *p.inner), [&](int64_t at, int32_t rows) {
    for (int64_t i = 0; i < rows;) {
      const int64_t row = (at + i) / period, column = (at + i) % period;
      const int64_t n = std::min(rows - i, period - column);
      if (column < useful)
        p.runs.push_back({static_cast<int32_t>(i),
                          static_cast<int32_t>(std::min(n, useful - column)),
                          to + row * to_row + column});
      i += n;
    }
  });
}

void q_copy_image(const QImage& image, const uint8_t* x, uint8_t zero, std::byte* to) {
  const int64_t row = image.size[2] * image.channels;
  parallel(image.size[0] * image.size[1], std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row)),
           [&](int64_t begin, int64_t end) {
             copy_rows(image, x, zero, begin, end, to + begin * row * image.element);
           });
}

void q_sum_pixels(const std::byte* x, int64_t pixels, int64_t step, int64_t channels, int element,
                  bool is_signed, int32_t* sums) {
  if (element == 1)
    return q_row_sums(reinterpret_cast<const uint8_t*>(x), step, pixels, channels, false, is_signed,
                      sums);
  parallel(pixels, std::max<int64_t>(1, 65536 / channels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto* from = reinterpret_cast<const int16_t*>(x) + i * step;
      int32_t sum = 0;
      for (int64_t c = 0; c < channels; ++c) sum += from[c];
      sums[i] = sum;
    }
  });
}

void q_sum_taps(const int32_t* of_pixels, std::span<const int64_t> taps, int64_t width,
                int64_t step, int32_t* sums) {
  std::fill_n(sums, width, 0);
  for (const int64_t tap : taps) {
    const int32_t* from = of_pixels + tap;
    if (step == 1)
      for (int64_t c = 0; c < width; ++c) sums[c] += from[c];
    else
      for (int64_t c = 0; c < width; ++c) sums[c] += from[c * step];
  }
}

int32_t product_zero(const QConvPlan& plan, int32_t zero) {
  if (plan.winograd) return 0;
  return plan.flip ? zero + 128 : zero;
}

QConvPlan plan_qconv_last(const ConvGeometry& shape, bool x_signed, bool rest, const QTiles& tiles,
                          const uint8_t* w, bool flip, bool zeros) {
  QConvPlan plan;
  ConvGeometry& g = plan.shape;
  g = shape;
  if (g.kernel[0] == 1 && g.stride[0] == 1 && g.pad[0] == 0 && g.out[0] == g.in[0]) {
    g.batch *= g.in[0];
    g.in[0] = g.out[0] = 1;
  }
  const bool deep = is_deep(g);
  if (!deep) g.stride[0] = 1;
  plan.x_signed = x_signed;
  plan.zeros = zeros;
  if (!zeros && !deep && q_winograd_takes(g, w, flip)) {
    plan.winograd = true;
    plan.weight_bytes = q_winograd_weight_bytes(g);
    plan.image_bytes = q_winograd_image_bytes(g);
    return plan;
  }
  plan.depthwise = !rest && !deep && g.in_channels == 1 && g.out_channels == 1 && g.taps() <= 256;
  const int64_t needed_slices = (g.out[0] - 1) * g.stride[0] + g.extent(0);
  const int64_t needed_rows = (g.out[1] - 1) * g.stride[1] + g.extent(1);
  const int64_t needed_columns = (g.out[2] - 1) * g.stride[2] + g.extent(2);
  const bool padded =
      g.pad[1] > 0 || g.pad[2] > 0 || needed_rows > g.in[1] || needed_columns > g.in[2];
  const int64_t pixels = g.batch * g.out_plane();
  QProduct& p = plan.product;
  p.inner = &tiles;
  if (plan.depthwise) {
    plan.flip = x_signed && has_vnni() && !zeros;
    plan.copy = padded || plan.flip;
    const int64_t places = std::min<int64_t>(32, q_depthwise_block(zeros));  // fill vectors
    if (g.stride[2] == 1 && g.groups < places && places % g.groups == 0 &&
        g.out[2] * g.groups >= places)
      plan.fold = places / g.groups;
    plan.weight_bytes = q_depthwise_bytes(plan.places(), g.taps(), zeros);
  } else {
    p.amx = q_use_amx(pixels);
    p.a_signed = x_signed && p.amx;
    plan.flip = x_signed && !p.amx;
    plan.element = tiles.element;
    // Stretches of a row of the window lie in one piece unless it is dilated or grouped.
    const bool whole = g.groups == 1 && (g.dilation[2] == 1 || g.kernel[2] == 1);
    plan.run = whole ? g.kernel[2] * g.in_channels : g.in_channels;
    const int64_t stretches = g.kernel[0] * g.kernel[1] * (whole ? 1 : g.kernel[2]);
    // VNNI reads whole groups, which must not be beyond the end of what is no copy.
    const bool odd = plan.run % 4 != 0 && !p.amx;
    plan.copy =
        padded || plan.flip || plan.element != 1 || stretches > 1 || odd || g.groups > 1 || deep;
    plan.weight_bytes =
        static_cast<size_t>(g.groups) * q_stretch_bytes(stretches, plan.run, g.out_channels, tiles);
  }
  plan.columns =
      plan.copy ? std::max(needed_columns, std::min(g.in[2] + g.pad[2], needed_columns)) : g.in[2];
  plan.rows = plan.copy ? needed_rows : g.in[1];
  plan.slices = plan.copy ? needed_slices : 1;
  plan.batches = plan.copy || plan.depthwise || has_gaps(g) ? 1 : g.batch;
  const int64_t pixel = plan.channels() * plan.element;
  const int64_t behind = 32 * g.stride[2] * pixel + kQImageSlack;  // is read, too
  if (plan.depthwise) {
    plan.row_slack = static_cast<size_t>(behind);
    return plan;
  }
  if (plan.copy)
    plan.image_bytes = static_cast<size_t>(plan.slices * plan.rows * plan.columns * pixel + behind);
  p.n = g.out_channels;
  p.run = plan.run;
  p.lda = g.stride[2] * pixel;
  p.offsets.clear();
  const bool whole = plan.run != g.in_channels || g.kernel[2] == 1;
  for (int64_t d = 0; d < g.kernel[0]; ++d)
    for (int64_t i = 0; i < g.kernel[1]; ++i)
      for (int64_t j = 0; j < (whole ? 1 : g.kernel[2]); ++j)
        p.offsets.push_back(((d * g.dilation[0] * plan.rows + i * g.dilation[1]) * plan.columns +
                             j * g.dilation[2]) *
                            pixel);
  plan_rows(plan);
  if (!deep && !zeros) shift_columns(plan);
  return plan;
}

void q_plan_bands(QConvPlan& plan, int64_t threads) {
  constexpr int64_t kLeastRows = 3, kMostWork = 16'000'000;
  const ConvGeometry& g = plan.shape;
  if (threads < 2 || threads > kOwnThreads || !plan.copy || plan.winograd || plan.depthwise ||
      plan.zeros || is_deep(g) || plan.product.amx || g.batch != 1 || groups_apart(g) ||
      g.out[1] < kLeastRows * threads || g.out_plane() * g.depth() * plan.outputs() > kMostWork)
    return;
  std::vector<QConvBand> bands;
  size_t bytes = 0;
  for (int64_t i = 0; i < threads; ++i) {
    const int64_t first = i * g.out[1] / threads, last = (i + 1) * g.out[1] / threads;
    const int64_t top = first * g.stride[1] - g.pad[1];  // that they see
    const int64_t bottom = (last - 1) * g.stride[1] - g.pad[1] + g.extent(1);
    ConvGeometry own = g;
    const int64_t from = std::max<int64_t>(0, top), to = std::min(g.in[1], bottom);
    if (from >= to) return;
    own.in[1] = to - from;
    own.out[1] = last - first;
    own.pad[1] = from - top;
    QConvBand band{plan_qconv_last(own, plan.x_signed, true, *plan.product.inner), from * g.in[2],
                   first * g.out[2], bytes};
    // The weights are packed for all alike.
    if (band.plan.run != plan.run || band.plan.shifted != plan.shifted || !band.plan.copy) return;
    bytes += band.plan.scratch_bytes();
    bands.push_back(std::move(band));
  }
  plan.bands = std::move(bands);
  plan.band_bytes = bytes;
}

void pack_qconv_last(const QConvPlan& plan, const uint8_t* w, bool flip, const int32_t* zeros,
                     std::byte* packed, int32_t* sums) {
  const ConvGeometry& g = plan.shape;
  const int64_t taps = g.taps(), inputs = g.in_channels, outputs = plan.outputs();
  // [M][C][taps] to [M][taps][C].
  const int64_t filter = taps * inputs;
  std::vector<uint8_t> room(taps == 1 && !flip ? 0 : static_cast<size_t>(outputs * filter));
  const uint8_t* turned = room.empty() ? w : room.data();
  if (!room.empty())
    parallel(outputs, std::max<int64_t>(1, 16384 / filter), [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) {
        uint8_t* to = room.data() + m * filter;
        transpose_tile(reinterpret_cast<const std::byte*>(w + m * filter), taps,
                       reinterpret_cast<std::byte*>(to), inputs, inputs, taps, 1);
        for (int64_t i = 0; i < filter && flip; ++i) to[i] ^= 0x80;
      }
    });
  const auto* bytes = reinterpret_cast<const int8_t*>(turned);
  if (plan.winograd) {
    q_winograd_pack(g, bytes, packed);
    std::fill_n(sums, outputs, 0);  // the image is less its zero point
    return;
  }
  if (plan.depthwise) {
    std::vector<int16_t> wide(static_cast<size_t>(plan.places() * filter));
    for (int64_t m = 0; m < outputs; ++m) {
      sums[m] = 0;
      for (int64_t i = m * taps; i < (m + 1) * taps; ++i) {
        const int weight = bytes[i] - (zeros != nullptr ? zeros[m] : 0);
        wide[static_cast<size_t>(i)] = static_cast<int16_t>(weight);
        sums[m] += weight;
      }
    }
    for (int64_t i = outputs * filter; i < plan.places() * filter; ++i)
      wide[static_cast<size_t>(i)] = wide[static_cast<size_t>(i - outputs * filter)];
    q_depthwise_pack(wide.data(), plan.places(), taps, plan.zeros, packed);
    return;
  }
  const auto stretches = static_cast<int64_t>(plan.product.offsets.size());
  std::vector<int32_t> panel_sums(static_cast<size_t>(g.out_channels + 64));
  for (int64_t group = 0; group < g.groups; ++group) {
    q_pack_stretches(turned + group * g.out_channels * filter, 1, filter, stretches, plan.run,
                     g.out_channels, false,
                     packed + group * static_cast<int64_t>(plan.weight_bytes) / g.groups,
                     panel_sums.data(), *plan.product.inner);
    std::copy_n(panel_sums.data(), g.out_channels, sums + group * g.out_channels);
  }
  if (zeros != nullptr)
    for (int64_t m = 0; m < outputs; ++m) sums[m] -= static_cast<int32_t>(filter) * zeros[m];
}

void run_qconv_last(const QConvPlan& plan, const uint8_t* x, uint8_t zero, const std::byte* packed,
                    const QFinish& finish, std::byte* scratch) {
  const ConvGeometry& g = plan.shape;
  const int64_t element = finish.element();
  if (!plan.bands.empty() && loop_threads() == static_cast<int>(plan.bands.size())) {
    return parallel(static_cast<int64_t>(plan.bands.size()), 1, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) {
        const QConvBand& band = plan.bands[static_cast<size_t>(begin)];
        QFinish own = finish;
        own.out = static_cast<std::byte*>(finish.out) + band.out * plan.outputs() * element;
        if (own.rest != nullptr) own.rest += band.out * plan.outputs();
        run_qconv_last(band.plan, x + band.in * plan.channels(), zero, packed, own,
                       scratch + band.scratch);
      }
    });
  }
  std::byte* const image = scratch;
  auto* const row_sums =
      reinterpret_cast<int32_t*>(scratch + plan.scratch_bytes() - plan.sum_bytes());
  const int64_t in_bytes = g.in_plane() * plan.channels();
  const int64_t out_elements = g.out_plane() * plan.outputs();
  for (int64_t n = 0; n < g.batch; n += plan.batches) {
    const uint8_t* from = x + n * in_bytes;
    QFinish part = finish;
    part.out = static_cast<std::byte*>(finish.out) + n * out_elements * element;
    if (part.rest != nullptr) part.rest += n * out_elements;
    if (plan.winograd) {
      q_winograd_run(plan, from, zero, packed, part, image);
      continue;
    }
    if (plan.depthwise) {
      run_depthwise(plan, from, zero, packed, part);
      continue;
    }
    if (plan.shifted) {
      copy_shifted(plan, from, zero, image);
      from = reinterpret_cast<const uint8_t*>(image);
    } else if (plan.copy) {
      q_copy_image(image_of(plan), from, zero, image);
      from = reinterpret_cast<const uint8_t*>(image);
    }
    const int64_t readable =
        plan.copy ? static_cast<int64_t>(plan.image_bytes) : plan.batches * in_bytes;
    const auto run_group = [&](int64_t group) {
      const int64_t first = group * g.out_channels, skip = group * g.in_channels * plan.element;
      QFinish own = part;
      own.out = static_cast<std::byte*>(part.out) + first * element;
      if (own.rest != nullptr) own.rest += first;
      if (own.column_add != nullptr) own.column_add += first;
      if (own.column_scale != nullptr) own.column_scale += first;
      if (own.column_bias != nullptr) own.column_bias += first;
      const auto* x_of_group = reinterpret_cast<const std::byte*>(from) + skip;
      if (plan.zeros) {
        sum_windows(plan, x_of_group, row_sums);
        own.row_sum = row_sums;
        own.zero += first;
      }
      q_product(plan.product, x_of_group, readable - skip,
                packed + group * static_cast<int64_t>(plan.weight_bytes) / g.groups, own);
    };
    // Products of small groups are too short to be shared out one by one.
    if (!plan.zeros && groups_apart(g))
      parallel(g.groups,
               std::max<int64_t>(1, 200'000 / (g.out_plane() * g.depth() * g.out_channels)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t group = begin; group < end; ++group) run_group(group);
               });
    else
      for (int64_t group = 0; group < g.groups; ++group) run_group(group);
  }
}

}  // namespace tombolo
