#include <algorithm>
#include <cstring>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

std::vector<int64_t> depth_offsets(const ConvPlan& plan) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(plan.shape.depth()));
  for (int64_t c = 0; c < plan.shape.in_channels; ++c)
    for (int64_t tap : plan.image.taps) offsets.push_back(c * plan.image.plane + tap);
  return offsets;
}

bool winograd_fits(const ConvGeometry& s) {
  if (s.kernel[1] != 3 || s.kernel[2] != 3) return false;
  for (int axis = s.kernel[0] == 1 ? 1 : 0; axis < 3; ++axis)
    if (s.stride[axis] != 1 || s.dilation[axis] != 1) return false;
  if (s.in_channels < 16 || s.out_channels < 16) return false;
  // Tiles of 4 x 4 that are mostly outside save nothing; neither do products
  // with few columns.
  const int64_t tiles = (s.out[1] + 3) / 4 * ((s.out[2] + 3) / 4);
  const int64_t covered = tiles * 16;
  // A slice and what its kernels see are transformed at once: 64 MiB at most.
  if (s.kernel[0] > 1 && tiles * 36 * (s.kernel[0] * s.in_channels + s.out_channels) > 16 << 20)
    return false;
  return s.out[1] >= 6 && s.out[2] >= 6 && tiles * s.batch * s.out[0] >= 8 &&
         covered * 36 * 10 <= s.out[1] * s.out[2] * 16 * 9 * 7;
}

}  // namespace

const char* name_of(ConvPlan::Algorithm algorithm) {
  switch (algorithm) {
    case ConvPlan::Algorithm::kTransposed:
      return "transposed";
    case ConvPlan::Algorithm::kWinograd:
      return "winograd";
    case ConvPlan::Algorithm::kDepthwise:
      return "depthwise";
    case ConvPlan::Algorithm::kPixels:
      return "pixels";
    default:
      return "direct";
  }
}

ConvPlan plan_convolution(const ConvGeometry& s, bool allow_winograd) {
  using Algorithm = ConvPlan::Algorithm;
  ConvPlan plan;
  plan.shape = s;
  plan.image = plan_image(s);
  const auto groups = static_cast<size_t>(s.groups);
  const size_t images =
      plan.image.copy ? static_cast<size_t>(s.in_channels * plan.image.plane) + 64 : 0;
  if (s.in_channels == 1 && s.out_channels <= 4 && s.groups > 1) {
    plan.algorithm = Algorithm::kDepthwise;
    plan.weight_floats = static_cast<size_t>(s.groups * s.out_channels * s.taps());
    return plan;
  }
  if (allow_winograd && winograd_fits(s)) {
    plan.algorithm = Algorithm::kWinograd;
    plan_winograd(plan);
    return plan;
  }
  plan.offsets = depth_offsets(plan);
  if (conv_pixels_pays(plan)) {
    plan.algorithm = Algorithm::kPixels;
    plan.weight_floats = groups * static_cast<size_t>(s.out_channels * s.depth());
    plan.scratch_floats = images * groups;
    return plan;
  }
  // Pixels as columns come in whole vectors, as rows one by one: where few
  // pixels leave many lanes empty, and channels fill them, the roles are
  // exchanged.
  const int64_t pixels = s.out_plane(), width = gemm_tiles().panel(), lanes = gemm_tiles().lanes;
  const int64_t last = pixels % width;  // a last panel of at most one vector costs half of one
  const int64_t used = pixels - last + (last == 0 ? 0 : last <= lanes ? lanes : width);
  if (s.groups == 1 && s.out_channels >= 2 * width && pixels <= 128 &&
      (used - pixels) * 10 > pixels) {
    plan.algorithm = Algorithm::kTransposed;
    plan.weight_floats = static_cast<size_t>(packed_b_floats(s.depth(), s.out_channels));
    plan.scratch_floats =
        images + static_cast<size_t>(s.depth() * transposed_row(pixels) + pixels * s.out_channels) +
        256;
    return plan;
  }
  plan.weight_floats = groups * static_cast<size_t>(direct_weights(s));
  plan.scratch_floats = images * groups;
  return plan;
}

ConvPlan plan_convolution_of_run(const ConvGeometry& s) {
  // Winograd's transform of a kernel takes as long as what it saves for so many tiles.
  constexpr int64_t kTiles = 32, kFewImages = 2;
  const int64_t tiles = (s.out[1] + 3) / 4 * ((s.out[2] + 3) / 4) * s.out[0] * s.batch;
  ConvPlan plan = plan_convolution(s, tiles >= kTiles);
  plan.as_given = plan.algorithm == ConvPlan::Algorithm::kDepthwise ||
                  (plan.algorithm == ConvPlan::Algorithm::kTransposed && s.batch <= kFewImages) ||
                  (plan.algorithm == ConvPlan::Algorithm::kDirect && sums_are_short(s));
  return plan;
}

void pack_convolution(const ConvPlan& plan, const float* w, float* packed) {
  const ConvGeometry& s = plan.shape;
  switch (plan.algorithm) {
    case ConvPlan::Algorithm::kDepthwise:
      std::memcpy(packed, w, plan.weight_floats * sizeof(float));
      return;
    case ConvPlan::Algorithm::kTransposed:
      return pack_b(w, 1, s.depth(), s.depth(), s.out_channels, 1, packed);
    case ConvPlan::Algorithm::kWinograd:
      return pack_winograd(plan, w, packed);
    case ConvPlan::Algorithm::kPixels:
      return pack_conv_pixels(plan, w, {s.depth(), 1}, packed);
    case ConvPlan::Algorithm::kDirect:
      break;
  }
  pack_direct(s, w, {s.depth(), 1}, packed);
}

void run_convolution(const ConvPlan& plan, const float* x, const float* packed, float* y,
                     const ConvEpilogue& epilogue, float* scratch) {
  switch (plan.algorithm) {
    case ConvPlan::Algorithm::kDepthwise:
      return run_depthwise(plan, x, packed, y, epilogue, scratch);
    case ConvPlan::Algorithm::kTransposed:
      return run_transposed(plan, x, packed, y, epilogue, scratch);
    case ConvPlan::Algorithm::kWinograd:
      return run_winograd(plan, x, packed, y, epilogue, scratch);
    case ConvPlan::Algorithm::kPixels:
      return run_conv_pixels(plan, x, packed, y, epilogue, scratch);
    case ConvPlan::Algorithm::kDirect:
      return run_direct(plan, x, packed, y, epilogue, scratch);
  }
}

}  // namespace tombolo
