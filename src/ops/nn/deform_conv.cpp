#include <algorithm>
#include <cmath>

#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/conv.h"
#include "ops/kernels/gemm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Linear interpolation at a point; elements outside count as zero.
template <typename T>
double interpolate(const Window& window, const T* plane, const double* position) {
  const size_t rank = window.rank();
  int64_t low[kMaxSpatialRank];
  double part[kMaxSpatialRank];
  for (size_t axis = 0; axis < rank; ++axis) {
    if (!(position[axis] > -1 && position[axis] < static_cast<double>(window.input[axis])))
      return 0;
    low[axis] = static_cast<int64_t>(std::floor(position[axis]));
    part[axis] = position[axis] - static_cast<double>(low[axis]);
  }
  double sum = 0;
  for (size_t corner = 0; corner < size_t{1} << rank; ++corner) {
    double weight = 1;
    int64_t at = 0;
    bool inside = true;
    for (size_t axis = 0; axis < rank; ++axis) {
      const bool high = (corner >> axis & 1) != 0;
      const int64_t index = low[axis] + high;
      weight *= high ? part[axis] : 1 - part[axis];
      inside = inside && index >= 0 && index < window.input[axis];
      at = at * window.input[axis] + index;
    }
    if (inside && weight != 0) sum += weight * static_cast<double>(plane[at]);
  }
  return sum;
}

template <typename T>
Status deform_conv(KernelContext& context, const Tensor& x, const Tensor& w) {
  TRY(const ConvShape shape, read_conv(context, x, w));
  const Window& window = shape.window;
  const size_t rank = window.rank();
  const auto axes = static_cast<int64_t>(rank);
  const int64_t taps = window.kernel_size();
  const int64_t offset_groups = context.attributes.get_int("offset_group", 1);
  if (offset_groups < 1 || shape.channels % offset_groups != 0)
    return context.error("offset_group is " + std::to_string(offset_groups) + ", X has " +
                         std::to_string(shape.channels) + " channels");
  TRY(const Tensor* offset_input, context.input(2));
  Dims dims = shape.output;
  dims[1] = offset_groups * taps * axes;
  CHECK_OK(check_dims(context, "offset", *offset_input, dims));
  TRY(Tensor offset, as<T>(context, *offset_input));
  TRY(Tensor mask, optional_as<T>(context, 4));
  dims[1] = offset_groups * taps;
  if (!absent(mask)) CHECK_OK(check_dims(context, "mask", mask, dims));
  TRY(Tensor bias, optional_as<T>(context, 3));
  if (!absent(bias)) CHECK_OK(check_dims(context, "B", bias, {{shape.out_channels}}));
  TRY(Tensor image, as<T>(context, x));
  TRY(Tensor weights, as<T>(context, w));
  TRY(Tensor y, context.allocate(dtype_of<T>(), shape.output));
  if (y.size() == 0) return give(context, 0, x.dtype(), std::move(y));
  const int64_t pixels = window.output_size(), plane = window.input_size();
  // The moved windows of one picture, then one product a group, as in Conv.
  TRY(Tensor columns, context.allocate(dtype_of<T>(), {{shape.channels, taps, pixels}}));
  for (int64_t n = 0; n < shape.batch; ++n) {
    context.parallel_for(shape.channels, 1, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        const int64_t og = n * offset_groups + c / (shape.channels / offset_groups);
        const T* from = image.data<T>() + (n * shape.channels + c) * plane;
        T* to = columns.data<T>() + c * taps * pixels;
        BoxIndex kernel(window.kernel);
        for (int64_t k = 0; k < taps; ++k, kernel.next()) {
          BoxIndex at(window.output);
          for (int64_t p = 0; p < pixels; ++p, at.next(), ++to) {
            double position[kMaxSpatialRank];
            for (size_t axis = 0; axis < rank; ++axis)
              position[axis] =
                  static_cast<double>(at[axis] * window.strides[axis] - window.pads_begin[axis] +
                                      kernel[axis] * window.dilations[axis]) +
                  static_cast<double>(
                      offset.data<
                          T>()[((og * taps + k) * axes + static_cast<int64_t>(axis)) * pixels + p]);
            double value = interpolate(window, from, position);
            if (!absent(mask))
              value *= static_cast<double>(mask.data<T>()[(og * taps + k) * pixels + p]);
            *to = static_cast<T>(value);
          }
        }
      }
    });
    const int64_t depth = shape.group_channels() * taps, outputs = shape.group_outputs();
    for (int64_t group = 0; group < shape.groups; ++group) {
      T* to = y.data<T>() + (n * shape.out_channels + group * outputs) * pixels;
      for (int64_t m = 0; m < outputs; ++m)
        std::fill_n(to + m * pixels, pixels,
                    absent(bias) ? T{} : bias.data<T>()[group * outputs + m]);
      parallel_gemm<T>(context, outputs, pixels, depth,
                       {weights.data<T>() + group * outputs * depth, depth, 1},
                       {columns.data<T>() + group * depth * pixels, pixels, 1}, to, pixels, true);
    }
  }
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_deform_conv(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  return with_float(context, *x, [&]<typename T>() { return deform_conv<T>(context, *x, *w); });
}

}  // namespace

namespace {
Status infer_deform_conv(InferContext& context) { return infer_convolution(context, 1); }
}  // namespace

OPERATOR(DeformConv) = {
    .name = "DeformConv",
    .doc = "convolution whose taps are moved by learned offsets",
    .versions = {19, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"offset", "T"},
            {"B", "T", kOptional},
            {"mask", "T", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"offset_group", 1},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{19, kFloats}, {22, kBf16}}}},
    .infer = infer_deform_conv,
    .reference = run_deform_conv,
    .down = {{19, 0, expand_deform_conv}},
};

}  // namespace tombolo::ops
