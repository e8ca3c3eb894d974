// Convolutions with an activation, with channels last, or with quantised tensors.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/microsoft/activation.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Node& conv_node(Official& official, const char* op_type = "Conv") {
  return official.node_with(op_type,
                            {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
}

/// Inference of a convolution whose X has its channels last; the weights keep theirs first.
Status infer_channels_last(InferContext& context, size_t weight_input) {
  InferType x = context.input(0);
  if (x.shape) x.shape = channels_first(*x.shape);
  std::vector<const InferType*> inputs(context.inputs.begin(), context.inputs.end());
  if (inputs.empty()) return ok();
  inputs[0] = &x;
  InferContext inner{context.node, kOfficialOpset,  context.attributes,
                     context.host, inputs,          {},
                     {},           context.outputs, {}};
  CHECK_OK(infer_convolution(inner, weight_input));
  if (!context.outputs.empty() && context.outputs[0].shape)
    context.outputs[0].shape = channels_last(*context.outputs[0].shape);
  return ok();
}

Status infer_conv(InferContext& context) { return infer_convolution(context, 1); }
Status infer_nhwc_conv(InferContext& context) { return infer_channels_last(context, 1); }

/// activation(conv(x, w) + b + z).
Status fused_conv(KernelContext& context, bool last) {
  TRY(Tensor x, tensor_at(context, 0));
  TRY(const Tensor w, tensor_at(context, 1));
  TRY(const Tensor b, tensor_or_absent(context, 2));
  TRY(Tensor z, tensor_or_absent(context, 3));
  const DType type = x.dtype();
  Official official(context);
  if (last) {
    TRY(x, channels_first(context, x));
  }
  TRY(Tensor y, official.call(conv_node(official), {x, w, b}));
  if (last) {
    TRY(y, channels_last(context, y));
  }
  if (!absent(z)) {
    TRY(y, official.call("Add", {y, z}));
  }
  TRY(const FusedActivation activation, read_activation(context));
  if (activation.none()) {
    context.set_output(0, std::move(y));
    return ok();
  }
  TRY(Tensor wide, converted(context, y, type == DType::kFloat64 ? type : DType::kFloat32));
  CHECK_OK(activation.apply(context, wide));
  return give(context, 0, type, std::move(wide));
}
Status run_fused_conv(KernelContext& context) { return fused_conv(context, false); }
Status run_nhwc_conv(KernelContext& context) { return fused_conv(context, true); }

Status run_ms_qlinear_conv(KernelContext& context) {
  if (context.attributes.get_int("channels_last", 0) == 0) return run_as(context, "QLinearConv");
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < context.input_count(); ++i) {
    TRY(Tensor input, tensor_or_absent(context, i));
    inputs.push_back(std::move(input));
  }
  if (inputs.empty()) return context.error("there is no x");
  TRY(inputs[0], channels_first(context, inputs[0]));
  Official official(context);
  TRY(std::vector<RunValue> outputs, official.run(conv_node(official, "QLinearConv"), inputs));
  TRY(Tensor y, channels_last(context, outputs[0].tensor()));
  context.set_output(0, std::move(y));
  return ok();
}
Status infer_ms_qlinear_conv(InferContext& context) {
  if (context.attributes.get_int("channels_last", 0) == 0) return infer_convolution(context, 3);
  return infer_channels_last(context, 3);
}

Status run_nhwc_max_pool(KernelContext& context) {
  TRY(const Tensor x, tensor_at(context, 0));
  TRY(const Tensor first, channels_first(context, x));
  Official official(context);
  const Node& node = official.node_with(
      "MaxPool", {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"});
  TRY(const Tensor y, official.call(node, {first}));
  TRY(Tensor last, channels_last(context, y));
  context.set_output(0, std::move(last));
  return ok();
}
Status infer_nhwc_max_pool(InferContext& context) {
  InferType x = context.input(0);
  if (!x.shape || x.shape->size() < 3) return ok();
  x.shape = channels_first(*x.shape);
  const InferType* inputs[] = {&x};
  InferContext inner{context.node, kOfficialOpset,  context.attributes,
                     context.host, inputs,          {},
                     {},           context.outputs, {}};
  CHECK_OK(infer_pool(inner));
  if (!context.outputs.empty() && context.outputs[0].shape)
    context.outputs[0].shape = channels_last(*context.outputs[0].shape);
  return ok();
}

/// The greatest of each window whose mask is 1; the mask counts on from the first image on.
Status run_maxpool_with_mask(KernelContext& context) {
  TRY(const Tensor x, tensor_at(context, 0));
  TRY(const Tensor* mask, context.input(1));
  if (x.dtype() != DType::kFloat32 || x.rank() < 3)
    return context.error("X must be floats of rank 3 or more, is " + to_string(x));
  if (mask->rank() != x.rank() || mask->size() == 0)
    return context.error("M must have the rank of X, is " + to_string(*mask));
  for (size_t axis = 2; axis < x.rank(); ++axis)
    if (mask->dim(axis) != x.dim(axis))
      return context.error("M must have the spatial axes of X, is " + to_string(*mask));
  TRY(Tensor masked, context.allocate(DType::kFloat32, x.dims()));
  for (int64_t i = 0; i < x.size(); ++i)
    masked.data<float>()[i] = mask->get_int64(i % mask->size()) == 0
                                  ? -std::numeric_limits<float>::infinity()
                                  : x.data<float>()[i];
  Official official(context);
  const Node& node = official.node_with("MaxPool", {"auto_pad", "kernel_shape", "pads", "strides"});
  TRY(Tensor y, official.call(node, {masked}));
  for (float& value : y.span<float>())
    value = std::max(value, std::numeric_limits<float>::lowest());
  context.set_output(0, std::move(y));
  return ok();
}

/// ConvTranspose whose pads are an input.
Status run_conv_transpose_dynamic(KernelContext& context) {
  TRY(const Tensor x, tensor_at(context, 0));
  TRY(const Tensor w, tensor_at(context, 1));
  TRY(const Tensor b, tensor_or_absent(context, 3));
  Official official(context);
  Node& node = official.node_with("ConvTranspose", {"auto_pad", "dilations", "group",
                                                    "kernel_shape", "output_padding", "strides"});
  if (context.has_input(2)) {
    TRY(const std::vector<int64_t> pads, context.input_ints(2));
    node.set_ints("pads", pads);
  }
  TRY(Tensor y, official.call(node, {x, w, b}));
  context.set_output(0, std::move(y));
  return ok();
}
Status infer_conv_transpose_dynamic(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* w = context.shape(1);
  if (x == nullptr) return ok();
  SymShape out(x->size());
  if (!out.empty()) out[0] = (*x)[0];
  if (w != nullptr && w->size() == x->size() && x->size() >= 2)
    out[1] = (*w)[1] * SymDim(context.attributes.get_int("group", 1));
  set_shape(context, 0, std::move(out));
  return ok();
}

}  // namespace

OPERATOR(microsoft_FusedConv) = {
    .name = "FusedConv",
    .domain = "com.microsoft",
    .doc = "an activation of conv(x, w) + b + z",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"B", "T", kOptional},
            {"Z", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"activation", Attr::kString},
            {"activation_params", Attr::kFloats},
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_conv,
    .reference = run_fused_conv,
};

OPERATOR(microsoft_NhwcConv) = {
    .name = "NhwcConv",
    .domain = "com.microsoft",
    .doc = "convolution with channels last",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"B", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_nhwc_conv,
    .reference = run_nhwc_conv,
};

OPERATOR(microsoft_NhwcFusedConv) = {
    .name = "NhwcFusedConv",
    .domain = "com.microsoft",
    .doc = "FusedConv with channels last",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"B", "T", kOptional},
            {"Z", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"activation", Attr::kString},
            {"activation_params", Attr::kFloats},
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
        },
    .infer = infer_nhwc_conv,
    .reference = run_nhwc_conv,
};

OPERATOR(microsoft_QLinearConv) = {
    .name = "QLinearConv",
    .domain = "com.microsoft",
    .doc = "convolution of quantised tensors, channels last on request",
    .versions = {1},
    .inputs =
        {
            {"x", "T1"},
            {"x_scale", "tensor(float)"},
            {"x_zero_point", "T1"},
            {"w", "T2"},
            {"w_scale", "tensor(float)"},
            {"w_zero_point", "T2"},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T3"},
            {"B", "T4", kOptional},
        },
    .outputs =
        {
            {"y", "T3"},
        },
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"channels_last", 0},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
            {"T3", {{1, kInt8s}}},
            {"T4", {{1, kI32}}},
        },
    .infer = infer_ms_qlinear_conv,
    .reference = run_ms_qlinear_conv,
};

OPERATOR(microsoft_NhwcMaxPool) = {
    .name = "NhwcMaxPool",
    .domain = "com.microsoft",
    .doc = "max pool with channels last",
    .versions = {1},
    .inputs =
        {
            {"x", "T"},
        },
    .outputs =
        {
            {"y", "T"},
        },
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"ceil_mode", 0},
            {"dilations", Attr::kInts},
            {"kernel_shape", required(Attr::kInts)},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_nhwc_max_pool,
    .reference = run_nhwc_max_pool,
};

OPERATOR(microsoft_MaxpoolWithMask) = {
    .name = "MaxpoolWithMask",
    .domain = "com.microsoft",
    .doc = "max pool over the elements that a mask keeps",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"M", "tensor(int32)"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"storage_order", 0},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T", {{1, kF32}}},
        },
    .infer = infer_pool,
    .reference = run_maxpool_with_mask,
};

OPERATOR(microsoft_ConvTransposeWithDynamicPads) = {
    .name = "ConvTransposeWithDynamicPads",
    .domain = "com.microsoft",
    .doc = "ConvTranspose whose pads are an input",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"Pads", "tensor(int64)", kOptional},
            {"B", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"output_padding", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_conv_transpose_dynamic,
    .reference = run_conv_transpose_dynamic,
};

}  // namespace tombolo::ops
