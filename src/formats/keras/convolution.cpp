// Convolutions: plain, depthwise, separable, transposed. Keras keeps kernels as
// [spatial..., in / groups, out], ONNX wants [out, in / groups, spatial...].

#include <algorithm>
#include <numeric>

#include "formats/keras/spatial.h"

namespace tombolo::keras {
namespace {

/// Kernel axes with the last two first, swapped: [h, w, a, b] -> [b, a, h, w].
Result<Tensor> turned(const Tensor& kernel) {
  const auto rank = static_cast<int64_t>(kernel.rank());
  std::vector<int64_t> perm{rank - 1, rank - 2};
  for (int64_t i = 0; i + 2 < rank; ++i) perm.push_back(i);
  return transposed(kernel, perm);
}

Status check_kernel(const Tensor& kernel, size_t spatial) {
  if (kernel.rank() != spatial + 2) {
    return parse_error("the kernel has shape " + dims_to_string(kernel.dims().span()));
  }
  return ok();
}

std::vector<int64_t> kernel_shape(const Tensor& kernel, size_t spatial) {
  return {kernel.dims().begin(), kernel.dims().begin() + spatial};
}

void add_window(const Spatial& spatial, const std::vector<int64_t>& kernel, Attrs& attrs) {
  const auto not_one = [](int64_t value) { return value != 1; };
  attrs.emplace_back("kernel_shape", kernel);
  if (std::any_of(spatial.strides.begin(), spatial.strides.end(), not_one)) {
    attrs.emplace_back("strides", spatial.strides);
  }
  if (std::any_of(spatial.dilations.begin(), spatial.dilations.end(), not_one)) {
    attrs.emplace_back("dilations", spatial.dilations);
  }
}

/// The layer's bias, or null.
Result<Value*> bias(LayerCall& call, bool wanted) {
  if (!wanted) return nullptr;
  return call.weight("bias");
}

Status finish(LayerCall& call, const Spatial& spatial, Value* y) {
  TRY(Value * result, apply_activation(call, spatial.back(call.b, y), call.config["activation"]));
  return call.out(result);
}

template <size_t kSpatial>
Status conv(LayerCall& call) {
  TRY(Spatial spatial, read_spatial(call, kSpatial));
  TRY(const Tensor kernel, call.weight_tensor("kernel"));
  CHECK_OK(check_kernel(kernel, kSpatial));
  TRY(const Tensor weight, turned(kernel));
  TRY(Value * b, bias(call, call.flag("use_bias", true)));
  Attrs attrs;
  const auto window = kernel_shape(kernel, kSpatial);
  add_window(spatial, window, attrs);
  CHECK_OK(add_padding(call, spatial, window, attrs));
  if (const int64_t groups = call.config["groups"].int_or(1); groups != 1) {
    attrs.emplace_back("group", groups);
  }
  return finish(call, spatial,
                call.b.op("Conv", {spatial.x, call.constant(weight, "kernel"), b}, attrs));
}

/// [spatial..., in, multiplier] -> [in * multiplier, 1, spatial...].
Result<Tensor> depthwise_kernel(const Tensor& kernel, size_t spatial) {
  CHECK_OK(check_kernel(kernel, spatial));
  std::vector<int64_t> perm{static_cast<int64_t>(spatial), static_cast<int64_t>(spatial) + 1};
  for (size_t i = 0; i < spatial; ++i) perm.push_back(static_cast<int64_t>(i));
  TRY(const Tensor turned_kernel, transposed(kernel, perm));
  Dims dims{turned_kernel.dim(0) * turned_kernel.dim(1), 1};
  for (size_t i = 0; i < spatial; ++i) dims.push_back(kernel.dim(i));
  return turned_kernel.reshaped(dims.span());
}

template <size_t kSpatial>
Status depthwise(LayerCall& call) {
  TRY(Spatial spatial, read_spatial(call, kSpatial));
  // Keras 2 and 3 name the variable differently.
  const bool old_name = call.weights.has("depthwise_kernel");
  TRY(const Tensor kernel, call.weight_tensor(old_name ? "depthwise_kernel" : "kernel"));
  TRY(const Tensor weight, depthwise_kernel(kernel, kSpatial));
  TRY(Value * b, bias(call, call.flag("use_bias", true)));
  const auto window = kernel_shape(kernel, kSpatial);
  Attrs attrs;
  add_window(spatial, window, attrs);
  CHECK_OK(add_padding(call, spatial, window, attrs));
  attrs.emplace_back("group", kernel.dim(kSpatial));
  return finish(call, spatial,
                call.b.op("Conv", {spatial.x, call.constant(weight, "kernel"), b}, attrs));
}

template <size_t kSpatial>
Status separable(LayerCall& call) {
  TRY(Spatial spatial, read_spatial(call, kSpatial));
  TRY(const Tensor depth_kernel, call.weight_tensor("depthwise_kernel"));
  TRY(const Tensor point_kernel, call.weight_tensor("pointwise_kernel"));
  TRY(const Tensor depth_weight, depthwise_kernel(depth_kernel, kSpatial));
  CHECK_OK(check_kernel(point_kernel, kSpatial));
  TRY(const Tensor point_weight, turned(point_kernel));
  TRY(Value * b, bias(call, call.flag("use_bias", true)));
  const auto window = kernel_shape(depth_kernel, kSpatial);
  Attrs attrs;
  add_window(spatial, window, attrs);
  CHECK_OK(add_padding(call, spatial, window, attrs));
  attrs.emplace_back("group", depth_kernel.dim(kSpatial));
  Value* depth =
      call.b.op("Conv", {spatial.x, call.constant(depth_weight, "depthwise_kernel")}, attrs);
  const std::vector<int64_t> ones(kSpatial, 1);
  return finish(call, spatial,
                call.b.op("Conv", {depth, call.constant(point_weight, "pointwise_kernel"), b},
                          {{"kernel_shape", ones}}));
}

/// Keras's kernel here is [spatial..., out, in], ONNX's [in, out, spatial...].
///
/// The result is the gradient of a forward convolution from the output's length to the input's:
/// total = (n - 1) s + extent - out is cut off, the smaller half in front; what is negative is
/// added behind as zeros.
template <size_t kSpatial>
Status conv_transpose(LayerCall& call) {
  TRY(Spatial spatial, read_spatial(call, kSpatial));
  TRY(const Tensor kernel, call.weight_tensor("kernel"));
  CHECK_OK(check_kernel(kernel, kSpatial));
  TRY(const Tensor weight, turned(kernel));
  TRY(Value * b, bias(call, call.flag("use_bias", true)));
  if (call.config["groups"].int_or(1) != 1) return not_supported(call, "groups");
  const auto window = kernel_shape(kernel, kSpatial);
  Attrs attrs;
  add_window(spatial, window, attrs);
  const std::string_view padding = call.config["padding"].string_or("valid");
  if (padding != "same" && padding != "valid") return not_supported(call, "padding");
  const bool same = padding == "same";
  const bool given = !call.config["output_padding"].is_null();
  TRY(const std::vector<int64_t> extra, call.ints("output_padding", kSpatial, 0));
  std::vector<int64_t> pads(2 * kSpatial, 0), added(kSpatial, 0), late(2 * kSpatial + 4, 0);
  bool needs_pad = false;
  for (size_t i = 0; i < kSpatial; ++i) {
    const int64_t stride = spatial.strides[i], extent = (window[i] - 1) * spatial.dilations[i] + 1;
    int64_t total = 0;  // (n - 1) s + extent - out, the same for every n
    if (given) {
      total = same ? 2 * (extent / 2) - extra[i] : -extra[i];
    } else {
      total = same ? extent - stride : std::min<int64_t>(extent - stride, 0);
    }
    if (total >= 0) {
      pads[i] = total / 2;
      pads[kSpatial + i] = total - total / 2;
    } else if (-total < std::max(stride, spatial.dilations[i])) {
      added[i] = -total;  // what ONNX allows as output_padding
    } else {
      late[kSpatial + 4 + i] = -total;
      needs_pad = true;
    }
  }
  const auto not_zero = [](int64_t value) { return value != 0; };
  if (std::any_of(pads.begin(), pads.end(), not_zero)) attrs.emplace_back("pads", pads);
  if (std::any_of(added.begin(), added.end(), not_zero)) {
    attrs.emplace_back("output_padding", added);
  }
  Value* w = call.constant(weight, "kernel");
  if (!needs_pad) {
    return finish(call, spatial, call.b.op("ConvTranspose", {spatial.x, w, b}, attrs));
  }
  Value* y =
      call.b.op("Pad", {call.b.op("ConvTranspose", {spatial.x, w}, attrs), call.b.ints(late)});
  if (b) {
    std::vector<int64_t> axes(kSpatial);
    std::iota(axes.begin(), axes.end(), 1);
    y = call.b.op("Add", {y, call.b.unsqueeze(b, axes)});
  }
  return finish(call, spatial, y);
}

constexpr LayerRow kConvolutionRows[] = {
    {"Conv1D", conv<1>},
    {"Conv2D", conv<2>},
    {"Conv3D", conv<3>},
    {"Convolution1D", conv<1>},
    {"Convolution2D", conv<2>},
    {"Convolution3D", conv<3>},
    {"DepthwiseConv1D", depthwise<1>},
    {"DepthwiseConv2D", depthwise<2>},
    {"SeparableConv1D", separable<1>},
    {"SeparableConv2D", separable<2>},
    {"SeparableConvolution1D", separable<1>},
    {"SeparableConvolution2D", separable<2>},
    {"Conv1DTranspose", conv_transpose<1>},
    {"Conv2DTranspose", conv_transpose<2>},
    {"Conv3DTranspose", conv_transpose<3>},
};

}  // namespace

std::span<const LayerRow> convolution_layers() { return kConvolutionRows; }

}  // namespace tombolo::keras
