// Convolution as a product of packed weights with windows that are gathered
// panel by panel.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

constexpr int64_t kDepth = 256;      ///< rows of a panel at a time
constexpr int64_t kPanels = 4;       ///< panels that a block of weights is used for
constexpr int64_t kMostPanels = 16;  ///< the same of weights that come from far away, or of windows
constexpr int64_t kNearBytes = 24 << 10;  ///< that fill at most so much of the first cache
constexpr int64_t kShortRows = 32;        ///< of outputs whose sums are short, at a time
constexpr int64_t kRows = 8;  ///< rows of a panel that are gathered before those of the next
constexpr int kMaxRuns = 64;

/// Offset of the first window element of output pixel `pixel`.
int64_t pixel_offset(const ConvGeometry& s, const ConvImage& image, int64_t pixel) {
  const int64_t column = pixel % s.out[2], row = pixel / s.out[2] % s.out[1];
  const int64_t depth = pixel / (s.out[2] * s.out[1]);
  return depth * s.stride[0] * image.slice + row * image.columns + column;
}

/// Whether whole panels of pixels are read where they lie, the rows of a 1x1 kernel's input: few
/// enough for the first cache, its sets and what the processor knows of pages, by few tiles, which
/// would not repay a copy.
bool reads_pixels(const ConvPlan& plan, int64_t tiles) {
  constexpr int64_t kMostRows = 128, kPage = 4096, kLine = 64, kWays = 8, kFewTiles = 8;
  const ConvGeometry& s = plan.shape;
  const int64_t sets = kPage / std::max(kLine, std::gcd(s.in_plane() * 4, kPage));
  return tiles <= kFewTiles && s.taps() == 1 && !plan.image.copy &&
         s.in_channels <= std::min(kMostRows, sets * kWays);
}

}  // namespace

bool sums_are_short(const ConvGeometry& s) {
  constexpr int64_t kVeryShort = 12;  // as in block_layout.cpp
  return s.depth() <= kVeryShort && gemm_tiles().short_rows[s.depth()] != nullptr;
}

int64_t direct_weights(const ConvGeometry& s) {
  return sums_are_short(s) ? s.out_channels * s.depth()
                           : packed_a_floats(s.out_channels, s.depth());
}

void pack_direct(const ConvGeometry& s, const float* w, WeightSteps steps, float* packed) {
  const int64_t outputs = s.out_channels, depth = s.depth();
  for (int64_t g = 0; g < s.groups; ++g, w += outputs * depth, packed += direct_weights(s)) {
    if (!sums_are_short(s)) {
      pack_a(w, steps.output, steps.input, outputs, depth, packed);
      continue;
    }
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t i = 0; i < depth; ++i)
        packed[o * depth + i] = w[o * steps.output + i * steps.input];
  }
}

const float* copy_image(const ConvPlan& plan, const float* x, int64_t channels, float* scratch) {
  if (!plan.image.copy) return x;
  parallel(channels, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, plan.image.plane)),
           [&](int64_t begin, int64_t end) {
             for (int64_t c = begin; c < end; ++c)
               split_image(plan.shape, plan.image, x + c * plan.shape.in_plane(), 0,
                           scratch + c * plan.image.plane);
           });
  return scratch;
}

int64_t find_runs(const ConvGeometry& shape, const ConvImage& image, int64_t begin, int64_t end,
                  PixelRun* runs) {
  int64_t count = 0;
  for (int64_t pixel = begin; pixel < end;) {
    const int64_t here = std::min(end - pixel, shape.out[2] - pixel % shape.out[2]);
    const int64_t from = pixel_offset(shape, image, pixel);
    PixelRun* before = count > 0 ? &runs[count - 1] : nullptr;
    if (before != nullptr && before->from + before->count == from)
      before->count += here;
    else
      runs[count++] = {pixel - begin, from, here};
    pixel += here;
  }
  return count;
}

void run_direct(const ConvPlan& plan, const float* x, const float* packed, float* y,
                const ConvEpilogue& epilogue, float* scratch) {
  const ConvGeometry& s = plan.shape;
  const GemmTiles& tiles = gemm_tiles();
  const int64_t width = tiles.panel(), pixels = s.out_plane(), depth = s.depth();
  GemmRowsFn* const short_rows = sums_are_short(s) ? tiles.short_rows[depth] : nullptr;
  const int64_t tile_rows = short_rows != nullptr ? kShortRows : tiles.tile_rows(s.out_channels);
  const int64_t tile_count = (s.out_channels + tile_rows - 1) / tile_rows;
  const int64_t panels = (pixels + width - 1) / width;
  if (panels == 0 || s.batch == 0 || s.out_channels == 0) return;
  const int64_t cuts = std::max<int64_t>(1, (depth + kDepth - 1) / kDepth);
  const int64_t step = std::max<int64_t>(1, (depth + cuts - 1) / cuts);
  // A panel, and what gathering may write beyond its end.
  const int64_t panel = step * width + tiles.lanes;
  const bool apart =
      images_apart(s.batch, static_cast<int64_t>(plan.weight_floats), panels * s.groups);
  const int64_t threads = apart ? 1 : thread_count();
  const bool far = direct_weights(s) * 4 > 2 * near_bytes();
  const int64_t most = std::clamp<int64_t>((far ? near_bytes() / 2 : kNearBytes) / (panel * 4),
                                           kPanels, kMostPanels);
  const int64_t tasks = far && threads == 1 ? 1 : 4 * threads;
  const int64_t group_panels = std::clamp<int64_t>(panels * s.groups / tasks, 1, most);
  const int64_t panel_groups = (panels + group_panels - 1) / group_panels;
  // Few panels: threads share them and take different output channels.
  int64_t row_groups = 1;
  if (panel_groups * s.groups < 4 * threads && tile_count > 1 && threads > 1)
    row_groups = std::min<int64_t>((tile_count + 3) / 4, 4 * threads / panel_groups);
  row_groups = std::max<int64_t>(row_groups, 1);
  const int64_t group_tiles = (tile_count + row_groups - 1) / row_groups;
  const int64_t weight_step = direct_weights(s);
  const Activation& act = epilogue.activation;
  const int64_t channels = s.groups * s.in_channels;
  const bool in_place = reads_pixels(plan, tile_count);
  const auto run_image = [&](int64_t n, float* room) {
    const float* image = copy_image(plan, x + n * channels * s.in_plane(), channels, room);
    const int64_t work = group_panels * width * depth * group_tiles * tile_rows;
    parallel(
        s.groups * panel_groups * row_groups,
        std::max<int64_t>(1, 200'000 / std::max<int64_t>(1, work)),
        [&](int64_t begin, int64_t end) {
          float* columns = thread_floats(1, static_cast<size_t>(group_panels * panel) + 64);
          PixelRun runs[kMostPanels][kMaxRuns];
          int64_t run_counts[kMostPanels] = {};
          for (int64_t task = begin; task < end; ++task) {
            const int64_t group = task / (panel_groups * row_groups);
            const int64_t first = task / row_groups % panel_groups * group_panels;
            const int64_t last = std::min(panels, first + group_panels);
            const int64_t tile_from = task % row_groups * group_tiles;
            const int64_t tile_to = std::min(tile_count, tile_from + group_tiles);
            const float* source =
                image + group * s.in_channels * (plan.image.copy ? plan.image.plane : s.in_plane());
            const int64_t out_row = (n * s.groups + group) * s.out_channels;
            for (int64_t p = first; p < last; ++p)
              run_counts[p - first] = find_runs(s, plan.image, p * width,
                                                std::min(pixels, (p + 1) * width), runs[p - first]);
            for (int64_t k0 = 0; k0 == 0 || k0 < depth; k0 += step) {
              const int64_t k = std::min(step, depth - k0);
              // Columns that are not there may hold anything but denormal numbers, which take long.
              if (last == panels && pixels % width != 0)
                std::fill_n(columns + (panels - 1 - first) * panel, k * width, 0.0f);
              // Some rows of all panels, then the next: what lies side by side in the image is read
              // together.
              for (int64_t from = k0; from < k0 + k; from += kRows)
                for (int64_t p = first; p < last; ++p) {
                  if (in_place && (p + 1) * width <= pixels) continue;
                  gather_pixels(source, plan.offsets.data(), from, std::min(k0 + k, from + kRows),
                                runs[p - first], run_counts[p - first], width,
                                columns + (p - first) * panel + (from - k0) * width);
                }
              for (int64_t t = tile_from; t < tile_to; ++t) {
                const int64_t row = t * tile_rows;
                const int rows = static_cast<int>(std::min(tile_rows, s.out_channels - row));
                const bool done = k0 + k >= depth;
                GemmTile tile{.a = packed + group * weight_step + (t * depth + k0) * tile_rows,
                              .lda = short_rows != nullptr ? depth : tile_rows,
                              .ldb = width,
                              .k = k,
                              .ldc = pixels,
                              .ldi = pixels,
                              .clamp = done && act.kind == Activation::Kind::kClamp,
                              .lo = act.alpha,
                              .hi = act.beta};
                if (k0 == 0 && epilogue.bias != nullptr)
                  tile.row_bias = epilogue.bias + group * s.out_channels + row;
                const float* init = k0 != 0 ? y : epilogue.residual;
                for (int64_t p = first; p < last; ++p) {
                  const int64_t cols = std::min(width, pixels - p * width);
                  const int64_t at = (out_row + row) * pixels + p * width;
                  float* c = y + at;
                  const bool lies = in_place && (p + 1) * width <= pixels;
                  tile.b = lies ? source + k0 * pixels + p * width : columns + (p - first) * panel;
                  tile.ldb = lies ? pixels : width;
                  tile.c = c;
                  tile.cols = cols;
                  if (init != nullptr) tile.init = init + at;
                  // The weights of the next tile come nearer, a part with each
                  // panel.
                  tile.next = tile.a + (depth * tile_rows) + (p - first) * k * 16;
                  if (t + 1 >= tile_to || (p - first + 1) * 16 > tile_rows + 16) tile.next = tile.a;
                  if (short_rows != nullptr)
                    short_rows(tile, rows);
                  else
                    tiles.packed_tile(rows, cols)(tile);
                }
                if (!done || act.tiled()) continue;
                const int64_t begin_pixel = first * width, at = out_row + row;
                for (int r = 0; r < rows; ++r)
                  apply_activation(act, y + (at + r) * pixels + begin_pixel,
                                   std::min(pixels, last * width) - begin_pixel);
              }
            }
          }
        });
  };
  if (!apart) {
    for (int64_t n = 0; n < s.batch; ++n) run_image(n, scratch);
    return;
  }
  parallel(s.batch, 1, [&](int64_t begin, int64_t end) {
    float* room = plan.image.copy
                      ? thread_floats(2, static_cast<size_t>(channels * plan.image.plane + 128))
                      : nullptr;
    for (int64_t n = begin; n < end; ++n) run_image(n, room);
  });
}

void run_transposed(const ConvPlan& plan, const float* x, const float* packed, float* y,
                    const ConvEpilogue& epilogue, float* scratch) {
  const ConvGeometry& s = plan.shape;
  const GemmTiles& tiles = gemm_tiles();
  const int64_t pixels = s.out_plane(), depth = s.depth(), width = tiles.panel();
  // Windows as [k][pixel], pixels padded to whole vectors; a 1x1 kernel reads
  // the image itself.
  const bool as_it_lies = s.taps() == 1 && !plan.image.copy;
  const int64_t row = as_it_lies ? pixels : transposed_row(pixels);
  const int tile_rows = tiles.tile_rows(pixels);
  const int64_t panels = (s.out_channels + width - 1) / width;
  const auto run_image = [&](int64_t n, float* windows) {
    float* product = windows + (as_it_lies ? 0 : depth * row + 64);
    float* images = product + pixels * s.out_channels + 64;
    const float* image =
        copy_image(plan, x + n * s.in_channels * s.in_plane(), s.in_channels, images);
    if (!as_it_lies) {
      std::vector<PixelRun> runs(static_cast<size_t>(pixels));
      const int64_t count = find_runs(s, plan.image, 0, pixels, runs.data());
      constexpr int64_t kBlock = 64;
      parallel((depth + kBlock - 1) / kBlock, std::max<int64_t>(1, 256 / pixels),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t from = b * kBlock;
                   gather_pixels(image, plan.offsets.data(), from, std::min(depth, from + kBlock),
                                 runs.data(), count, row, windows + from * row);
                 }
               });
    }
    const float* a = as_it_lies ? image : windows;
    // Channels [begin, end) of the product, pixels down, become rows of the output.
    const auto turn = [&](int64_t begin, int64_t end) {
      constexpr int64_t kAtOnce = 16;
      // Not at once where they belong: the residual may lie there.
      float* const turned = thread_floats(1, static_cast<size_t>(kAtOnce * pixels));
      for (int64_t c0 = begin; c0 < end; c0 += kAtOnce) {
        const int64_t channels = std::min(kAtOnce, end - c0);
        const int64_t at = (n * s.out_channels + c0) * pixels;
        transpose_tile(reinterpret_cast<const std::byte*>(product + c0), s.out_channels,
                       reinterpret_cast<std::byte*>(turned), pixels, pixels, channels,
                       sizeof(float));
        finish_rows(turned, pixels, 0,
                    epilogue.residual != nullptr ? epilogue.residual + at : nullptr,
                    epilogue.activation, channels, pixels, y + at);
      }
    };
    parallel(panels, std::max<int64_t>(1, 200'000 / (pixels * width * depth)),
             [&](int64_t begin, int64_t end) {
               float* const room =
                   plan.as_given ? thread_floats(3, static_cast<size_t>(kDepth * width)) : nullptr;
               for (int64_t k0 = 0; k0 == 0 || k0 < depth; k0 += kDepth) {
                 const int64_t k = std::min(kDepth, depth - k0);
                 for (int64_t p = begin; p < end; ++p) {
                   GemmTile t{.lda = row,
                              .b = packed + p * width * depth + k0 * width,
                              .ldb = width,
                              .k = k,
                              .ldc = s.out_channels,
                              .cols = std::min(width, s.out_channels - p * width)};
                   if (k0 == 0 && epilogue.bias != nullptr) t.col_bias = epilogue.bias + p * width;
                   const float* next = p + 1 < end ? t.b + width * depth : nullptr;
                   if (plan.as_given) {
                     pack_b_panel(packed + p * width * depth + k0, 1, depth, k, t.cols, 1, room);
                     t.b = room;
                     next = nullptr;
                   }
                   for (int64_t r = 0, number = 0; r < pixels; r += tile_rows, ++number) {
                     const int rows = static_cast<int>(std::min<int64_t>(tile_rows, pixels - r));
                     t.a = a + k0 * row + r;
                     t.c = product + r * s.out_channels + p * width;
                     t.next = next != nullptr && number < width / 16 ? next + number * k * 16 : t.b;
                     if (k0 != 0) {
                       t.init = t.c;
                       t.ldi = s.out_channels;
                     }
                     tiles.packed_tile(rows, t.cols)(t);
                   }
                   if (k0 + k >= depth) turn(p * width, p * width + t.cols);
                 }
               }
             });
  };
  if (!images_apart(s.batch, static_cast<int64_t>(plan.weight_floats), panels)) {
    for (int64_t n = 0; n < s.batch; ++n) run_image(n, scratch);
    return;
  }
  parallel(s.batch, 1, [&](int64_t begin, int64_t end) {
    float* room = thread_floats(2, plan.scratch_floats);
    for (int64_t n = begin; n < end; ++n) run_image(n, room);
  });
}

}  // namespace tombolo
