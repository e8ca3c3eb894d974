// Pools, means and softmax of quantised tensors.

#include <cmath>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/microsoft/linear.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

bool is_channels_last(const AttributeReader& attributes) {
  return attributes.get_int("channels_last", 0) != 0;
}

/// Runs `node` on the numbers of input 0 in the layout that it wants.
Status pool(KernelContext& context, Official& official, const Node& node) {
  TRY(const Tensor* x, context.input(0));
  TRY(Tensor values, read_linear(context, 0));
  if (is_channels_last(context.attributes)) {
    TRY(values, channels_first(context, values));
  }
  TRY(Tensor y, official.call(node, {values}));
  if (is_channels_last(context.attributes)) {
    TRY(y, channels_last(context, y));
  }
  return give_linear(context, y, 3, 4, x->dtype());
}

Status run_qlinear_average_pool(KernelContext& context) {
  Official official(context);
  return pool(context, official,
              official.node_with("AveragePool", {"auto_pad", "ceil_mode", "count_include_pad",
                                                 "kernel_shape", "pads", "strides"}));
}
Status run_qlinear_global_average_pool(KernelContext& context) {
  Official official(context);
  return pool(context, official, official.node("GlobalAveragePool"));
}

/// Inference in the layout that the shared functions know.
Status infer_with_channels(InferContext& context, InferFn infer) {
  const SymShape* x = context.shape(0);
  if (x == nullptr || x->size() < 2) return ok();
  const bool last = is_channels_last(context.attributes);
  InferType input = context.input(0);
  if (last) input.shape = channels_first(*x);
  const InferType* inputs[] = {&input};
  InferContext inner{context.node,    22, context.attributes, context.host, inputs, {}, {},
                     context.outputs, {}};
  CHECK_OK(infer(inner));
  if (last && !context.outputs.empty() && context.outputs[0].shape)
    context.outputs[0].shape = channels_last(*context.outputs[0].shape);
  return ok();
}
Status infer_qlinear_average_pool(InferContext& context) {
  return infer_with_channels(context, infer_pool);
}
Status infer_qlinear_global_average_pool(InferContext& context) {
  return infer_with_channels(context, infer_global_pool);
}

Status run_qlinear_reduce_mean(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor values, read_linear(context, 0));
  Official official(context);
  TRY(const Tensor y,
      official.call(official.node_with("ReduceMean", {"axes", "keepdims"}), {values}, 13));
  return give_linear(context, y, 3, 4, x->dtype());
}

Status infer_qlinear_reduce_mean(InferContext& context) {
  const InferType* inputs[] = {&context.input(0)};
  InferContext inner{context.node,    13, context.attributes, context.host, inputs, {}, {},
                     context.outputs, {}};
  return infer_reduce(inner);
}

/// The attribute `opset` says whether the axes from `axis` on are one (before 13).
Status run_qlinear_softmax(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor values, read_linear(context, 0));
  Official official(context);
  Node& node = official.node("Softmax");
  const bool coerced = context.attributes.get_int("opset", 13) < 13;
  node.set_int("axis", context.attributes.get_int("axis", -1));
  TRY(const Tensor y, official.call(node, {values}, coerced ? 11 : 13));
  return give_linear(context, y, 3, 4, x->dtype());
}

}  // namespace

OPERATOR(microsoft_QLinearAveragePool) = {
    .name = "QLinearAveragePool",
    .domain = "com.microsoft",
    .doc = "average pool of a quantised tensor, quantised again",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"x_scale", "tensor(float)"},
            {"x_zero_point", "T", kOptional},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"ceil_mode", 0},
            {"channels_last", 0},
            {"count_include_pad", 0},
            {"kernel_shape", required(Attr::kInts)},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_qlinear_average_pool,
    .reference = run_qlinear_average_pool,
};

OPERATOR(microsoft_QLinearGlobalAveragePool) = {
    .name = "QLinearGlobalAveragePool",
    .domain = "com.microsoft",
    .doc = "mean over the spatial axes of a quantised tensor",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"x_scale", "tensor(float)"},
            {"x_zero_point", "T"},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"channels_last", 0},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_qlinear_global_average_pool,
    .reference = run_qlinear_global_average_pool,
};

OPERATOR(microsoft_QLinearReduceMean) = {
    .name = "QLinearReduceMean",
    .domain = "com.microsoft",
    .doc = "mean over axes of a quantised tensor, quantised again",
    .versions = {1},
    .inputs =
        {
            {"data", "T"},
            {"data_scale", "tensor(float)"},
            {"data_zero_point", "T", kOptional},
            {"reduced_scale", "tensor(float)"},
            {"reduced_zero_point", "T", kOptional},
        },
    .outputs =
        {
            {"reduced", "T"},
        },
    .attributes =
        {
            {"axes", required(Attr::kInts)},
            {"keepdims", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_qlinear_reduce_mean,
    .reference = run_qlinear_reduce_mean,
};

OPERATOR(microsoft_QLinearSoftmax) = {
    .name = "QLinearSoftmax",
    .domain = "com.microsoft",
    .doc = "softmax of a quantised tensor, quantised again",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"X_scale", "tensor(float)"},
            {"x_zero_point", "T", kOptional},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"axis", -1},
            {"opset", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_unary,
    .reference = run_qlinear_softmax,
};

}  // namespace tombolo::ops
