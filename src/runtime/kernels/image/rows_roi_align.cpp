// RoiAlign of floats: the picture is turned to channels last, so that a sample is four rows of
// channels, and each region is turned back.

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/kernels/roi_sample.h"
#include "runtime/kernels/image/channels_last.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/tensor/lookup.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

struct RoiState final : KernelState {
  int64_t rows = 1, columns = 1, ratio = 0;
  double scale = 1, shift = 0;
  bool maximum = false;
  Dims output;
};

bool plan_roi(const KernelQuery& q, RoiState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3 || q.dtype(0) != DType::kFloat32 ||
      q.dtype(1) != DType::kFloat32 || q.dtype(2) != DType::kInt64)
    return false;
  const auto x = q.dims(0), rois = q.dims(1), batches = q.dims(2);
  if (x.size() != 4 || element_count(x) < 1 || batches.size() != 1 || rois.size() != 2 ||
      rois[1] != 4 || rois[0] != batches[0] || rois[0] < 1 || x[2] * x[3] > 1 << 24)
    return false;
  s.rows = q.attributes.get_int("output_height", 1);
  s.columns = q.attributes.get_int("output_width", 1);
  s.ratio = q.attributes.get_int("sampling_ratio", 0);
  // How many samples there are when no ratio is given, the regions decide.
  if (s.rows < 1 || s.columns < 1 || s.rows > 256 || s.columns > 256 || s.ratio < 1 || s.ratio > 16)
    return false;
  const Text mode = q.attributes.get_string("mode", "avg");
  if (mode != "avg" && mode != "max") return false;
  s.maximum = mode == "max";
  s.scale = static_cast<double>(q.attributes.get_float("spatial_scale", 1));
  s.shift = q.opset >= 16 && q.attributes.get_string("coordinate_transformation_mode",
                                                     "half_pixel") == "half_pixel"
                ? 0.5
                : 0;
  s.output = {rois[0], x[1], s.rows, s.columns};
  return true;
}
bool supports_roi(const KernelQuery& q) {
  RoiState state;
  return plan_roi(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_roi(const PrepareContext& q) {
  auto state = std::make_unique<RoiState>();
  plan_roi(q, *state);
  state->scratch_bytes = static_cast<size_t>(element_count(q.dims(0))) * sizeof(float);
  return state;
}

/// Rows and weights of all samples of all cells: [cell][sample][4].
void look_up(const RoiState& s, const float* roi, int64_t height, int64_t width, int32_t* rows,
             float* weights) {
  const auto at = [&](int i) { return static_cast<double>(roi[i]) * s.scale - s.shift; };
  const double left = at(0), top = at(1);
  double roi_width = at(2) - left, roi_height = at(3) - top;
  if (s.shift == 0) {
    roi_width = std::max(roi_width, 1.0);
    roi_height = std::max(roi_height, 1.0);
  }
  const double cell_height = roi_height / static_cast<double>(s.rows);
  const double cell_width = roi_width / static_cast<double>(s.columns);
  const double share = s.maximum ? 1 : 1 / static_cast<double>(s.ratio * s.ratio);
  for (int64_t cell = 0; cell < s.rows * s.columns; ++cell)
    for (int64_t i = 0; i < s.ratio * s.ratio; ++i) {
      const auto place = [&](double start, double size, int64_t own, int64_t step) {
        return start + size * (static_cast<double>(own) +
                               (static_cast<double>(step) + 0.5) / static_cast<double>(s.ratio));
      };
      const ops::RoiSample sample =
          ops::roi_sample(place(top, cell_height, cell / s.columns, i / s.ratio),
                          place(left, cell_width, cell % s.columns, i % s.ratio), height, width);
      for (size_t k = 0; k < 4; ++k) {
        *rows++ = static_cast<int32_t>(sample.at[k]);
        *weights++ = static_cast<float>(sample.weight[k] * share);
      }
    }
}

Status run_roi(KernelRun& run) {
  const auto& s = run.state<RoiState>();
  const Tensor& x = run.input(0);
  const float* rois = run.data<float>(1);
  const int64_t* batches = run.data<int64_t>(2);
  const int64_t count = s.output[0], channels = x.dim(1), plane = x.dim(2) * x.dim(3);
  for (int64_t n = 0; n < count; ++n) {
    if (batches[n] < 0 || batches[n] >= x.dim(0))
      return runtime_error("batch_indices has the value " + std::to_string(batches[n]) +
                           ", X has " + std::to_string(x.dim(0)) + " pictures");
    for (int k = 0; k < 2; ++k) {
      const double size = std::fabs(static_cast<double>(rois[n * 4 + 2 + k]) -
                                    static_cast<double>(rois[n * 4 + k])) *
                          std::fabs(s.scale) / static_cast<double>(k == 0 ? s.columns : s.rows);
      if (!(size <= 4096)) return runtime_error("region " + std::to_string(n) + " is too large");
    }
  }
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  auto* turned = reinterpret_cast<float*>(run.scratch());
  turn_channels_last(run, x, plane, turned);
  const int64_t cells = s.rows * s.columns, taps = 4 * s.ratio * s.ratio;
  float* to = y->data<float>();
  run.parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> rows(static_cast<size_t>(cells * taps));
    std::vector<float> weights(rows.size()), region(static_cast<size_t>(cells * channels));
    for (int64_t n = begin; n < end; ++n) {
      look_up(s, rois + n * 4, x.dim(2), x.dim(3), rows.data(), weights.data());
      for (int64_t cell = 0; cell < cells; ++cell)
        blend_rows_at(turned + batches[n] * plane * channels, rows.data() + cell * taps,
                      weights.data() + cell * taps, taps, channels, s.maximum,
                      region.data() + cell * channels);
      transpose_tile(reinterpret_cast<const std::byte*>(region.data()), channels,
                     reinterpret_cast<std::byte*>(to + n * channels * cells), cells, cells,
                     channels, 4);
    }
  });
  return ok();
}

}  // namespace

KERNEL(roi_align) = {
    .name = "roi_align",
    .op = "RoiAlign",
    .supports = supports_roi,
    .prepare = prepare_roi,
    .run = run_roi,
};

}  // namespace tombolo
