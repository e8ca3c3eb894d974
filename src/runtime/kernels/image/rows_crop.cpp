// CropAndResize and MaxRoiPool of floats: channel by channel as they lie.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/kernels/image/crop.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

bool takes_crops(const KernelQuery& q, size_t inputs, int64_t numbers) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != inputs || q.dtype(0) != DType::kFloat32 ||
      q.dtype(1) != DType::kFloat32)
    return false;
  const auto x = q.dims(0), boxes = q.dims(1);
  return x.size() == 4 && element_count(x) > 0 && x[2] * x[3] < 1 << 24 && boxes.size() == 2 &&
         boxes[0] > 0 && boxes[1] == numbers;
}

/// body(box, planes, room) for all channels of all boxes of `cells` results; image(box) is where it
/// is. As many channels at a time as stay near go through all boxes.
template <typename Image, typename Body>
void for_crops(const KernelRun& run, int64_t cells, float* y, Image&& image, Body&& body) {
  constexpr int64_t kNear = 65536, kTasks = 16, kFew = 16384;
  const Tensor& x = run.input(0);
  const int64_t channels = x.dim(1), plane = x.dim(2) * x.dim(3), count = run.input(1).dim(0);
  const int64_t shared = count * channels * cells < kFew ? channels : channels * count / kTasks;
  const int64_t together = std::clamp<int64_t>(std::min(kNear / plane, shared), 1, channels);
  const int64_t parts = (channels + together - 1) / together;
  run.parallel_for(parts * count, std::max<int64_t>(1, 4096 / (cells * together)),
                   [&](int64_t begin, int64_t end) {
                     CropRoom room;
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t box = task % count, channel = task / count * together;
                       body(box,
                            CropPlanes{x.data<float>() + (image(box) * channels + channel) * plane,
                                       x.dim(2), x.dim(3), std::min(together, channels - channel),
                                       y + (box * channels + channel) * cells},
                            room);
                     }
                   });
}

struct CropState final : KernelState {
  bool nearest = false;
  float outside = 0;
};
bool supports_crop(const KernelQuery& q) {
  if (!takes_crops(q, 4, 4) || q.dtype(2) != DType::kInt32 || q.dtype(3) != DType::kInt32)
    return false;
  const Text mode = q.attributes.get_string("mode", "bilinear");
  return q.dims(2).size() == 1 && q.dims(2)[0] == q.dims(1)[0] && q.dims(3).size() == 1 &&
         q.dims(3)[0] == 2 && (mode == "bilinear" || mode == "nearest");
}
Result<std::unique_ptr<KernelState>> prepare_crop(const PrepareContext& q) {
  auto state = std::make_unique<CropState>();
  state->nearest = q.attributes.get_string("mode", "bilinear") == "nearest";
  state->outside = q.attributes.get_float("extrapolation_value", 0);
  return state;
}
Status run_crop(KernelRun& run) {
  const auto& s = run.state<CropState>();
  const Tensor& x = run.input(0);
  const float* boxes = run.data<float>(1);
  const int32_t *images = run.data<int32_t>(2), *size = run.data<int32_t>(3);
  const int64_t count = run.input(1).dim(0), rows = size[0], columns = size[1];
  if (rows < 1 || columns < 1) return runtime_error("crop_size must be positive");
  const int64_t dims[] = {count, x.dim(1), rows, columns};
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  // Where the rows and columns of all boxes lie, which all channels share.
  std::vector<ops::CropSample> samples;
  samples.reserve(static_cast<size_t>(count * (rows + columns)));
  for (int64_t n = 0; n < count; ++n) {
    if (images[n] < 0 || images[n] >= x.dim(0))
      return runtime_error("batch_indices has the value " + std::to_string(images[n]) +
                           ", there are " + std::to_string(x.dim(0)) + " images");
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t length = x.dim(static_cast<int64_t>(axis) + 2);
      for (int64_t i = 0; i < size[axis]; ++i)
        samples.emplace_back(
            ops::crop_position(i, size[axis], boxes[n * 4 + axis], boxes[n * 4 + axis + 2], length),
            length, s.nearest);
    }
  }
  for_crops(
      run, rows * columns, y->data<float>(), [&](int64_t box) { return images[box]; },
      [&](int64_t box, const CropPlanes& planes, CropRoom& room) {
        const ops::CropSample* own = samples.data() + box * (rows + columns);
        crop_box(planes, {own, own + rows, rows, columns, s.nearest, s.outside}, room);
      });
  return ok();
}

struct CellState final : KernelState {
  int64_t cells[2] = {1, 1};  ///< down and along
  double scale = 1;
};
bool supports_greatest(const KernelQuery& q) {
  const auto shape = q.attributes.get_ints("pooled_shape");
  return takes_crops(q, 2, 5) && shape.size() == 2 && shape[0] > 0 && shape[1] > 0 &&
         shape[0] < 1 << 16 && shape[1] < 1 << 16;
}
Result<std::unique_ptr<KernelState>> prepare_greatest(const PrepareContext& q) {
  auto state = std::make_unique<CellState>();
  const auto shape = q.attributes.get_ints("pooled_shape");
  std::copy_n(shape.begin(), 2, state->cells);
  state->scale = static_cast<double>(q.attributes.get_float("spatial_scale", 1));
  return state;
}
Status run_greatest(KernelRun& run) {
  const auto& s = run.state<CellState>();
  const Tensor& x = run.input(0);
  const float* rois = run.data<float>(1);
  const int64_t count = run.input(1).dim(0), rows = s.cells[0], columns = s.cells[1];
  const int64_t dims[] = {count, x.dim(1), rows, columns};
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  std::vector<ops::CellSpan> spans;
  spans.reserve(static_cast<size_t>(count * (rows + columns)));
  for (int64_t n = 0; n < count; ++n) {
    const float* roi = rois + n * 5;
    if (!(roi[0] >= 0 && roi[0] < static_cast<float>(x.dim(0))))
      return runtime_error("region " + std::to_string(n) + " is in picture " +
                           std::to_string(roi[0]) + ", X has " + std::to_string(x.dim(0)));
    double edges[4];
    for (size_t i = 0; i < 4; ++i) {
      edges[i] = std::round(static_cast<double>(roi[i + 1]) * s.scale);
      if (!std::isfinite(edges[i]))
        return runtime_error("region " + std::to_string(n) + " is not finite");
    }
    for (int64_t i = 0; i < rows; ++i)
      spans.push_back(ops::cell_span(i, rows, edges[1], edges[3], x.dim(2)));
    for (int64_t i = 0; i < columns; ++i)
      spans.push_back(ops::cell_span(i, columns, edges[0], edges[2], x.dim(3)));
  }
  for_crops(
      run, rows * columns, y->data<float>(),
      [&](int64_t box) { return static_cast<int64_t>(rois[box * 5]); },
      [&](int64_t box, const CropPlanes& planes, CropRoom& room) {
        const ops::CellSpan* own = spans.data() + box * (rows + columns);
        crop_greatest(planes, {own, own + rows, rows, columns}, room);
      });
  return ok();
}

}  // namespace

KERNEL(crop_and_resize) = {
    .name = "crop_and_resize",
    .op = "CropAndResize",
    .domain = "com.microsoft",
    .supports = supports_crop,
    .prepare = prepare_crop,
    .run = run_crop,
};
KERNEL(max_roi_pool) = {
    .name = "max_roi_pool",
    .op = "MaxRoiPool",
    .supports = supports_greatest,
    .prepare = prepare_greatest,
    .run = run_greatest,
};

}  // namespace tombolo
