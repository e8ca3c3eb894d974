// CropAndResize: boxes of images, resampled to one size.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/crop_sample.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_crop_and_resize(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* rois, context.input(1));
  TRY(const Tensor* images, context.input(2));
  TRY(const std::vector<int64_t> size, context.input_ints(3));
  const Text mode = context.attributes.get_string("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest")
    return context.error("mode is \"" + std::string(mode) + "\"");
  if (x->rank() != 4 || rois->rank() != 2 || rois->dim(1) != 4 || size.size() != 2)
    return context.error("X must have rank 4, rois be [count, 4], crop_size have 2 values: " +
                         to_string(*x) + ", " + to_string(*rois));
  const int64_t count = rois->dim(0), channels = x->dim(1), height = x->dim(2), width = x->dim(3);
  CHECK_OK(check_dims(context, "batch_indices", *images, {{count}}));
  if (size[0] < 1 || size[1] < 1 || height < 1 || width < 1)
    return context.error("crop_size must be positive, and images not empty: " + to_string(*x));
  TRY(const Tensor in, as<float>(context, *x));
  TRY(const Tensor boxes, as<float>(context, *rois));
  TRY(Tensor y, context.allocate(DType::kFloat32, {{count, channels, size[0], size[1]}}));
  const float outside = context.attributes.get_float("extrapolation_value", 0);
  if (y.size() == 0) return give(context, 0, x->dtype(), std::move(y));
  const bool nearest = mode == "nearest";
  // Where the rows and columns of all boxes lie, which all channels share.
  std::vector<CropSample> samples(static_cast<size_t>(count * (size[0] + size[1])));
  for (int64_t n = 0; n < count; ++n) {
    const int64_t image = images->get_int64(n);
    if (image < 0 || image >= x->dim(0))
      return context.error("batch_indices has the value " + std::to_string(image) + ", there are " +
                           std::to_string(x->dim(0)) + " images");
    const float* box = boxes.data<float>() + n * 4;
    CropSample* to = samples.data() + n * (size[0] + size[1]);
    for (int64_t i = 0; i < size[0]; ++i)
      *to++ = CropSample(crop_position(i, size[0], box[0], box[2], height), height, nearest);
    for (int64_t j = 0; j < size[1]; ++j)
      *to++ = CropSample(crop_position(j, size[1], box[1], box[3], width), width, nearest);
  }
  context.parallel_for(count * channels, 8, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / channels;
      const float* from =
          in.data<float>() + (images->get_int64(n) * channels + task % channels) * height * width;
      float* to = y.data<float>() + task * size[0] * size[1];
      const CropSample* rows = samples.data() + n * (size[0] + size[1]);
      const CropSample* columns = rows + size[0];
      for (int64_t i = 0; i < size[0]; ++i, to += size[1]) {
        const CropSample& v = rows[i];
        if (!v.inside) {
          std::fill_n(to, size[1], outside);
          continue;
        }
        const float *above = from + v.first * width, *below = from + v.second * width;
        for (int64_t j = 0; j < size[1]; ++j) {
          const CropSample& u = columns[j];
          if (!u.inside) {
            to[j] = outside;
          } else if (nearest) {
            to[j] = above[u.first];
          } else {
            const float top = above[u.first] + (above[u.second] - above[u.first]) * u.share;
            const float bottom = below[u.first] + (below[u.second] - below[u.first]) * u.share;
            to[j] = top + (bottom - top) * v.share;
          }
        }
      }
    }
  });
  return give(context, 0, x->dtype(), std::move(y));
}

Status infer_crop_and_resize(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* rois = context.shape(1);
  if (x == nullptr || rois == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 4));
  CHECK_OK(expect_rank(context, 1, 2));
  const SymShape* size = context.ints(3);
  const bool known = size != nullptr && size->size() == 2;
  set_shape(context, 0,
            {(*rois)[0], (*x)[1], known ? (*size)[0] : SymDim(), known ? (*size)[1] : SymDim()});
  return ok();
}

}  // namespace

OPERATOR(microsoft_CropAndResize) = {
    .name = "CropAndResize",
    .domain = "com.microsoft",
    .doc = "boxes of images, resampled to one size",
    .versions = {1},
    .inputs =
        {
            {"X", "T1"},
            {"rois", "T1"},
            {"batch_indices", "T2"},
            {"crop_size", "T2"},
        },
    .outputs =
        {
            {"Y", "T1"},
        },
    .attributes =
        {
            {"extrapolation_value", 0.0f},
            {"mode", "bilinear"},
        },
    .types =
        {
            {"T1", {{1, kFloats}}},
            {"T2", {{1, kI32}}},
        },
    .infer = infer_crop_and_resize,
    .reference = run_crop_and_resize,
};

}  // namespace tombolo::ops
