#include <algorithm>
#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/roi_sample.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status roi_align(KernelContext& context, const Tensor& x) {
  TRY(const Tensor* rois_input, context.input(1));
  TRY(const Tensor* batches, context.input(2));
  if (x.rank() != 4 || batches->rank() != 1)
    return context.error("X must have rank 4 and batch_indices rank 1, are " + to_string(x) +
                         " and " + to_string(*batches));
  const int64_t count = batches->dim(0), channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  CHECK_OK(check_dims(context, "rois", *rois_input, {{count, 4}}));
  TRY(Tensor rois, as<double>(context, *rois_input));
  TRY(Tensor in, as<T>(context, x));
  const int64_t rows = context.attributes.get_int("output_height", 1);
  const int64_t columns = context.attributes.get_int("output_width", 1);
  const int64_t ratio = context.attributes.get_int("sampling_ratio", 0);
  constexpr int64_t kMost = 4096;  // sampling points along one axis of a cell
  if (rows < 1 || columns < 1 || ratio < 0 || ratio > kMost)
    return context.error("output_height is " + std::to_string(rows) + ", output_width is " +
                         std::to_string(columns) + ", sampling_ratio is " + std::to_string(ratio));
  const double scale = static_cast<double>(context.attributes.get_float("spatial_scale", 1));
  const Text mode = context.attributes.get_string("mode", "avg");
  if (mode != "avg" && mode != "max")
    return context.error("mode \"" + std::string(mode) + "\" is not known");
  // Version 10 has no attribute and does not shift.
  const bool half_pixel =
      context.opset >= 16 &&
      context.attributes.get_string("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  TRY(Tensor y, context.allocate(dtype_of<T>(), {{count, channels, rows, columns}}));
  if (y.size() != 0 && height * width == 0) return context.error("X has no elements");
  for (int64_t n = 0; n < count; ++n) {
    const int64_t batch = batches->get_int64(n);
    if (batch < 0 || batch >= x.dim(0))
      return context.error("batch_indices has the value " + std::to_string(batch) + ", X has " +
                           std::to_string(x.dim(0)) + " pictures");
    const double* roi = rois.data<double>() + n * 4;
    const double shift = half_pixel ? 0.5 : 0;
    const double left = roi[0] * scale - shift, top = roi[1] * scale - shift;
    double roi_width = roi[2] * scale - shift - left, roi_height = roi[3] * scale - shift - top;
    if (!half_pixel) {
      roi_width = std::max(roi_width, 1.0);
      roi_height = std::max(roi_height, 1.0);
    }
    const double cell_height = roi_height / static_cast<double>(rows);
    const double cell_width = roi_width / static_cast<double>(columns);
    const auto too_large = [&] {
      return context.error("region " + std::to_string(n) + " is too large: its cells have " +
                           std::to_string(cell_height) + " by " + std::to_string(cell_width) +
                           " pixels");
    };
    if (!(std::fabs(cell_height) <= kMost && std::fabs(cell_width) <= kMost)) return too_large();
    if (y.size() == 0) continue;  // a height of 2^40 needs no memory where there are no channels
    const int64_t points_y =
        ratio > 0 ? ratio : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(cell_height)));
    const int64_t points_x =
        ratio > 0 ? ratio : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(cell_width)));
    const double points = static_cast<double>(std::max<int64_t>(points_y * points_x, 1));
    // Where all cells look, once for all channels, unless that is very much.
    const int64_t in_cell = points_y * points_x;
    // More samples take minutes; without a ratio they are as many as pixels.
    constexpr double kMostSamples = int64_t{1} << 30;
    if (static_cast<double>(y.size() / count) * static_cast<double>(in_cell) > kMostSamples)
      return too_large();
    const auto sample_of = [&](int64_t cell, int64_t i) {
      const double py = top + cell_height * (static_cast<double>(cell / columns) +
                                             (static_cast<double>(i / points_x) + 0.5) /
                                                 static_cast<double>(points_y));
      const double px = left + cell_width * (static_cast<double>(cell % columns) +
                                             (static_cast<double>(i % points_x) + 0.5) /
                                                 static_cast<double>(points_x));
      return roi_sample(py, px, height, width);
    };
    std::vector<RoiSample> samples;
    const bool known =
        static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(in_cell) <
        1e6;
    for (int64_t cell = 0; known && cell < rows * columns; ++cell)
      for (int64_t i = 0; i < in_cell; ++i) samples.push_back(sample_of(cell, i));
    const bool average = mode == "avg";
    context.parallel_for(channels, 16, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        const T* plane = in.data<T>() + (batch * channels + c) * height * width;
        T* to = y.data<T>() + (n * channels + c) * rows * columns;
        for (int64_t cell = 0; cell < rows * columns; ++cell) {
          double sum = 0, most = -INFINITY;
          if (known && average) {
            const RoiSample* sample = samples.data() + cell * in_cell;
            for (const RoiSample* end = sample + in_cell; sample != end; ++sample)
              sum += (sample->weight[0] * static_cast<double>(plane[sample->at[0]]) +
                      sample->weight[1] * static_cast<double>(plane[sample->at[1]])) +
                     (sample->weight[2] * static_cast<double>(plane[sample->at[2]]) +
                      sample->weight[3] * static_cast<double>(plane[sample->at[3]]));
            to[cell] = static_cast<T>(sum / points);
            continue;
          }
          // "max" takes the greatest weighted neighbour, not the greatest sample: so have the
          // specification's own implementation and test data it.
          for (int64_t i = 0; i < in_cell; ++i) {
            const RoiSample sample =
                known ? samples[static_cast<size_t>(cell * in_cell + i)] : sample_of(cell, i);
            for (size_t k = 0; k < 4; ++k) {
              const double part = sample.weight[k] * static_cast<double>(plane[sample.at[k]]);
              sum += part;
              most = std::max(most, part);
            }
          }
          to[cell] = static_cast<T>(average ? sum / points : in_cell == 0 ? 0 : most);
        }
      }
    });
  }
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_roi_align(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return roi_align<T>(context, *x); });
}

}  // namespace

namespace {
Status infer_roi_align(InferContext& context) {
  CHECK_OK(expect_rank(context, 0, 4));
  CHECK_OK(expect_rank(context, 1, 2));
  CHECK_OK(expect_rank(context, 2, 1));
  const SymShape* x = context.shape(0);
  const SymShape* rois = context.shape(1);
  const SymShape* batch = context.shape(2);
  SymDim count = rois != nullptr ? (*rois)[0] : SymDim();
  if (batch != nullptr) {
    TRY(count, unify_dims(context, count, (*batch)[0], "rois against batch_indices"));
  }
  set_shape(context, 0,
            {count, x != nullptr ? (*x)[1] : SymDim(),
             SymDim(context.attributes.get_int("output_height", 1)),
             SymDim(context.attributes.get_int("output_width", 1))});
  return ok();
}
}  // namespace

namespace {

/// The older versions do not shift the input by half a pixel.
Status step_output_half_pixel(StepContext& step) {
  step.node.set_string("coordinate_transformation_mode", "output_half_pixel");
  return ok();
}

}  // namespace

namespace {

Status step_only_output_half_pixel(StepContext& step) {
  if (step.get_string("coordinate_transformation_mode", "half_pixel") != "output_half_pixel")
    return step.cannot("it knew the coordinates output_half_pixel only");
  step.node.remove_attribute("coordinate_transformation_mode");
  return ok();
}

}  // namespace

OPERATOR(RoiAlign) = {
    .name = "RoiAlign",
    .doc = "samples regions on a grid by bilinear interpolation",
    .versions = {10, 16, 22},
    .inputs =
        {
            {"X", "T1"},
            {"rois", "T1"},
            {"batch_indices", "T2"},
        },
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"mode", "avg"},
            {"output_height", 1},
            {"output_width", 1},
            {"sampling_ratio", 0},
            {"spatial_scale", 1.0f},
            {"coordinate_transformation_mode", "half_pixel", {.since = 16}},
        },
    .types =
        {
            {"T1", {{10, kFloats}, {22, kBf16}}},
            {"T2", {{10, kI64}}},
        },
    .infer = infer_roi_align,
    .reference = run_roi_align,
    .up = {{10, 16, step_output_half_pixel}},
    .down = {{16, 10, step_only_output_half_pixel}},
};

}  // namespace tombolo::ops
