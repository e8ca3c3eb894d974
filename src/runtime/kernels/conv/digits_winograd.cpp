#include "runtime/kernels/conv/digits_winograd.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/kernels/matmul/gemm_digits.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

DigitPanels panels_of(const BlockConvPlan& plan) {
  return {plan.shape.in_channels, plan.shape.out_channels};
}

/// Rows of one matrix of transformed tiles.
struct TileRows {
  const float* v;
  int64_t plane;
  int64_t channels;
  static const float* floats(const void* argument, int64_t row, float* room) {
    const auto& self = *static_cast<const TileRows*>(argument);
    copy_row(self.at(row), room);
    return room;
  }
  DigitRow at(int64_t row) const { return {v + row * kBlock, plane, channels}; }
};

}  // namespace

bool digits_winograd_fits(const BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  return plan.joined == 1 && digits_fit(s.out_channels, s.in_channels) && s.groups == 1 &&
         s.in_channels >= 96 && s.out_channels >= 96 && !plan.own_blocks && !plan.on_the_way &&
         plan.tile_block >= 48;
}

size_t digits_winograd_bytes(const BlockConvPlan& plan) {
  return static_cast<size_t>(winograd_matrices(plan.shape) * panels_of(plan).bytes());
}

bool pack_digits_winograd(const BlockConvPlan& plan, const float* w, std::byte* packed) {
  const ConvGeometry& s = plan.shape;
  const DigitPanels panels = panels_of(plan);
  const int64_t products = winograd_matrices(s);
  const int64_t inputs = s.in_channels, taps = s.taps(), matrix = inputs * kDigitsWidth;
  std::atomic<bool> held{true};
  parallel(panels.panels(), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> kernels(static_cast<size_t>(taps * matrix));
    std::vector<float> transformed(static_cast<size_t>(products * matrix));
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kDigitsWidth;
      transform_panel(s, w, first, kDigitsWidth, kernels.data(), transformed.data());
      for (int64_t i = 0; i < products && held.load(std::memory_order_relaxed); ++i) {
        const float* const rows = transformed.data() + i * matrix;
        std::byte* const to = packed + i * panels.bytes();
        if (!digits_of(reinterpret_cast<const std::byte*>(rows), inputs, kDigitsWidth, false, {},
                       reinterpret_cast<float*>(to) + first))
          held.store(false, std::memory_order_relaxed);
        else
          digits_pack(rows, 0, inputs, panels, panel, to);
      }
    }
  });
  return held;
}

void multiply_digits_winograd(const BlockConvPlan& plan, const std::byte* packed, const float* v,
                              float* m, int64_t tiles, int64_t first, int64_t last, int64_t count) {
  const ConvGeometry& s = plan.shape;
  const DigitPanels panels = panels_of(plan);
  const int64_t tile_bytes = digit_tile_bytes(s.in_channels), plane = tiles * kBlock;
  const int64_t in_step = winograd_step(blocks_of(s.in_channels), tiles);
  const int64_t out_step = winograd_step(blocks_of(s.out_channels), tiles);
  const int64_t rows = digits_block(count);
  float* const scales =
      thread_floats(4, static_cast<size_t>(digit_block_floats(rows, s.in_channels)));
  auto* const digits = reinterpret_cast<std::byte*>(scales + rows);
  for (int64_t matrix = first; matrix < last; ++matrix)
    for (int64_t row = 0; row < count; row += rows) {
      const int64_t some = std::min(rows, count - row);
      const TileRows from{v + matrix * in_step + row * kBlock, plane, s.in_channels};
      split_tiles(some, s.in_channels, digits, scales, [&](int64_t r) { return from.at(r); });
      const DigitRows a{.digits = digits,
                        .tile = tile_bytes,
                        .scales = scales,
                        .floats = &TileRows::floats,
                        .argument = &from};
      const DigitResult result{
          .c = m + matrix * out_step + row * kBlock, .ldc = kBlock, .plane = plane};
      digits_product(a, some, packed + matrix * panels.bytes(), panels, result, panels.steps(), 0,
                     panels.halves());
    }
}

}  // namespace tombolo
