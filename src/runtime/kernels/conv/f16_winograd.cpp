#include "runtime/kernels/conv/f16_winograd.h"

#include <algorithm>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

/// Products that float16 sums up: what is transformed back magnifies the error of long sums.
constexpr int64_t kSummed = 32;

/// Bytes of one matrix of weights.
int64_t matrix_bytes(const BlockConvPlan& plan) {
  return bf16_b_bytes(plan.shape.in_channels, blocks_of(plan.shape.out_channels) * kBlock);
}

/// Sums as they are, to blocks of channels a plane apart.
struct TileBlocks {
  float* m;
  int64_t plane;

  static void finish(const void* argument, const float* sums, int64_t row, int64_t rows,
                     int64_t column, int64_t columns) {
    const auto& self = *static_cast<const TileBlocks*>(argument);
    for (int64_t c = 0; c < columns; c += kBlock)
      bf16_store_block(sums + c, rows, nullptr, nullptr, {},
                       self.m + (column + c) / kBlock * self.plane + row * kBlock);
  }
};

}  // namespace

bool f16_winograd_fits(const ConvGeometry& s) {
  return has_f16_products() && s.groups == 1 &&
         bf16_pays({1, s.in_channels, s.out_channels, s.in_channels});
}

size_t f16_winograd_bytes(const BlockConvPlan& plan) {
  return static_cast<size_t>(winograd_matrices(plan.shape) * matrix_bytes(plan));
}

void pack_f16_winograd(const BlockConvPlan& plan, const float* w, std::byte* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t inputs = s.in_channels, taps = s.taps(), products = winograd_matrices(s);
  const int64_t n = blocks_of(s.out_channels) * kBlock, panels = (n + kBf16Panel - 1) / kBf16Panel;
  const int64_t matrix = inputs * kBf16Panel;
  const float largest = largest_finite(w, s.out_channels * inputs * taps);
  std::vector<float> scales;
  for (int64_t i = 0; i < products; ++i) {
    // Not by what is there, which would take a transformation of its own: float16 loses no digits
    // by a scale that is too small by some bits.
    const double most = largest * winograd_growth({s.kernel[1], s.kernel[2]}, i);
    scales.push_back(f16_scale(static_cast<float>(most)));
    bf16_pack_scale(scales.back(), inputs, n, packed + i * matrix_bytes(plan));
  }
  parallel(panels, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> kernels(static_cast<size_t>(taps * matrix));
    std::vector<float> transformed(static_cast<size_t>(products * matrix));
    for (int64_t p = begin; p < end; ++p) {
      transform_panel(s, w, p * kBf16Panel, kBf16Panel, kernels.data(), transformed.data());
      for (int64_t i = 0; i < products; ++i)
        bf16_pack(transformed.data() + i * matrix, 0, inputs, inputs, p,
                  scales[static_cast<size_t>(i)], packed + i * matrix_bytes(plan));
    }
  });
}

void multiply_f16_winograd(const BlockConvPlan& plan, const std::byte* packed, const float* v,
                           float* m, int64_t tiles, int64_t first, int64_t last, int64_t count) {
  const ConvGeometry& s = plan.shape;
  const int64_t plane = tiles * kBlock, in = winograd_step(blocks_of(s.in_channels), tiles);
  const int64_t out = winograd_step(blocks_of(s.out_channels), tiles);
  const int64_t n = blocks_of(s.out_channels) * kBlock;
  QProduct p = bf16_plan_rows(count, n, s.in_channels);
  for (int64_t i = first; i < last; ++i) {
    const std::byte* b = packed + i * matrix_bytes(plan);
    const Bf16Pixels from{.x = v + i * in,
                          .plane = plane,
                          .channels = s.in_channels,
                          .width = p.run,
                          .line_pixels = count,
                          .step = kBlock,
                          .line = 0};
    const TileBlocks to{m + i * out, plane};
    bf16_rows_product_alone(
        p, {&Bf16Pixels::round, &from}, b, i + 1 < last ? b + matrix_bytes(plan) : nullptr,
        read_scale(b + matrix_bytes(plan) - kScaleBytes), kSummed, {&TileBlocks::finish, &to});
  }
}

}  // namespace tombolo
