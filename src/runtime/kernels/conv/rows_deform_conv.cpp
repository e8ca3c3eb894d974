// DeformConv of two axes: where each tap of the kernel reads, and how much of its four neighbours,
// is found once for all channels that share offsets; then a product of matrices, as Conv's.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

constexpr size_t kX = 0, kW = 1, kOffset = 2, kBias = 3, kMask = 4;

/// What one tap reads at one output pixel. Places that do not count are that of a zero behind the
/// plane.
struct Corners {
  int32_t at[4];
  float part[4];
};

struct DeformState final : KernelState {
  ConvGeometry shape;
  int64_t sharing = 1;  ///< groups of channels that share offsets
  Dims output;
  // Where in scratch: floats.
  int64_t columns_at = 0, panels_at = 0;

  int64_t channels() const { return shape.groups * shape.in_channels; }
};

bool plan_deform(const KernelQuery& q, DeformState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 || q.dims(kX).size() != 4) return false;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if (q.has_input(i) && q.dtype(i) != DType::kFloat32) return false;
  const auto shape = read_conv_geometry(q.attributes, q.dims(kX), q.dims(kW));
  if (!shape || element_count(q.dims(kX)) < 1 || shape->in_plane() >= INT32_MAX) return false;
  s.shape = *shape;
  s.sharing = q.attributes.get_int("offset_group", 1);
  if (s.sharing < 1 || s.channels() % s.sharing != 0) return false;
  const int64_t taps = shape->taps(), outputs = shape->groups * shape->out_channels;
  s.output = output_dims(*shape, outputs, 2);
  const auto fits = [&](size_t i, int64_t channels) {
    Dims wanted = s.output;
    wanted[1] = channels;
    return !q.has_input(i) || Dims(q.dims(i)) == wanted;
  };
  if (!fits(kOffset, s.sharing * taps * 2) || !fits(kMask, s.sharing * taps)) return false;
  return !q.has_input(kBias) || Dims(q.dims(kBias)) == Dims{outputs};
}

bool supports_deform(const KernelQuery& query) {
  DeformState state;
  return plan_deform(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_deform(const PrepareContext& context) {
  auto state = std::make_unique<DeformState>();
  DeformState& s = *state;
  plan_deform(context, s);
  const ConvGeometry& g = s.shape;
  const int64_t pixels = g.out_plane();
  constexpr int64_t kCornerFloats = sizeof(Corners) / 4;
  s.columns_at = s.sharing * g.taps() * pixels * kCornerFloats;
  s.panels_at = s.columns_at + (s.channels() * g.taps() * pixels + 15) / 16 * 16;
  s.scratch_bytes = static_cast<size_t>(s.panels_at + packed_b_floats(g.depth(), pixels) + 64) * 4;
  return state;
}

/// A share's tap at all output pixels; `offset` has the rows' before the columns', `mask` may be
/// null.
void find_corners(const ConvGeometry& g, int64_t tap, const float* offset, const float* mask,
                  Corners* out) {
  const int64_t height = g.in[1], width = g.in[2], pixels = g.out_plane();
  const auto nowhere = static_cast<int32_t>(height * width);
  const int64_t row = tap / g.kernel[2] * g.dilation[1] - g.pad[1];
  const int64_t column = tap % g.kernel[2] * g.dilation[2] - g.pad[2];
  for (int64_t p = 0; p < pixels; ++p) {
    const double y =
        static_cast<double>(p / g.out[2] * g.stride[1] + row) + static_cast<double>(offset[p]);
    const double x = static_cast<double>(p % g.out[2] * g.stride[2] + column) +
                     static_cast<double>(offset[pixels + p]);
    Corners& c = out[p];
    std::fill_n(c.at, 4, nowhere);
    std::fill_n(c.part, 4, mask != nullptr ? mask[p] : 1.0f);
    // Also where a coordinate is no number.
    if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width)))
      continue;
    const auto low_y = static_cast<int64_t>(std::floor(y)),
               low_x = static_cast<int64_t>(std::floor(x));
    const double part_y = y - static_cast<double>(low_y), part_x = x - static_cast<double>(low_x);
    for (int i = 0; i < 4; ++i) {
      const int64_t at_y = low_y + i / 2, at_x = low_x + i % 2;
      const double part = (i / 2 != 0 ? part_y : 1 - part_y) * (i % 2 != 0 ? part_x : 1 - part_x);
      if (part == 0 || at_y < 0 || at_y >= height || at_x < 0 || at_x >= width) continue;
      c.at[i] = static_cast<int32_t>(at_y * width + at_x);
      c.part[i] *= static_cast<float>(part);
    }
  }
}

Status run_deform(KernelRun& run) {
  const auto& s = run.state<DeformState>();
  const ConvGeometry& g = s.shape;
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  const int64_t taps = g.taps(), pixels = g.out_plane(), plane = g.in_plane();
  const int64_t channels = s.channels(), shared = channels / s.sharing, depth = g.depth();
  auto* corners = reinterpret_cast<Corners*>(run.scratch());
  auto* columns = reinterpret_cast<float*>(run.scratch()) + s.columns_at;
  auto* panels = reinterpret_cast<float*>(run.scratch()) + s.panels_at;
  const float *x = run.data<float>(kX), *w = run.data<float>(kW);
  const float* offset = run.data<float>(kOffset);
  const float* mask = run.has_input(kMask) ? run.data<float>(kMask) : nullptr;
  for (int64_t n = 0; n < g.batch; ++n) {
    run.parallel_for(
        s.sharing * taps, std::max<int64_t>(1, 4096 / pixels), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t at = n * s.sharing * taps + i;
            find_corners(g, i % taps, offset + at * 2 * pixels,
                         mask != nullptr ? mask + at * pixels : nullptr, corners + i * pixels);
          }
        });
    run.parallel_for(channels, std::max<int64_t>(1, 8192 / (taps * pixels)),
                     [&](int64_t begin, int64_t end) {
                       float* image = thread_floats(1, static_cast<size_t>(plane + 1));
                       image[plane] = 0;
                       for (int64_t c = begin; c < end; ++c) {
                         std::memcpy(image, x + (n * channels + c) * plane,
                                     static_cast<size_t>(plane) * sizeof(float));
                         const Corners* from = corners + c / shared * taps * pixels;
                         float* to = columns + c * taps * pixels;
                         for (int64_t i = 0; i < taps * pixels; ++i) {
                           const Corners& k = from[i];
                           to[i] = image[k.at[0]] * k.part[0] + image[k.at[1]] * k.part[1] +
                                   image[k.at[2]] * k.part[2] + image[k.at[3]] * k.part[3];
                         }
                       }
                     });
    for (int64_t group = 0; group < g.groups; ++group) {
      const int64_t first = group * g.out_channels;
      pack_b(columns + group * depth * pixels, pixels, 1, depth, pixels, 1, panels);
      GemmEpilogue epilogue;
      if (run.has_input(kBias)) epilogue.row_bias = run.data<float>(kBias) + first;
      gemm(g.out_channels, pixels, depth, w + first * depth, depth, panels,
           y->data<float>() + (n * g.groups * g.out_channels + first) * pixels, pixels, epilogue);
    }
  }
  return ok();
}

}  // namespace

KERNEL(deform_conv_f32) = {
    .name = "deform_conv_f32",
    .op = "DeformConv",
    .supports = supports_deform,
    .prepare = prepare_deform,
    .run = run_deform,
};

}  // namespace tombolo
