// Experiments of the first releases that models still hold in ai.onnx.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/elementwise.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

struct Pair {
  double alpha, beta;
};
Pair parameters(const KernelContext& context, float alpha, float beta) {
  return {static_cast<double>(context.attributes.get_float("alpha", alpha)),
          static_cast<double>(context.attributes.get_float("beta", beta))};
}

Status run_affine(KernelContext& context) {
  const auto [alpha, beta] = parameters(context, 1, 0);
  return map(context, [alpha = alpha, beta = beta](auto x) {
    return static_cast<decltype(x)>(alpha * static_cast<double>(x) + beta);
  });
}
Status run_parametric_softplus(KernelContext& context) {
  const auto [alpha, beta] = parameters(context, 0, 0);
  return map(context, [alpha = alpha, beta = beta](auto x) {
    const double z = beta * static_cast<double>(x);
    const double soft = z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
    return static_cast<decltype(x)>(alpha * soft);
  });
}
Status run_scaled_tanh(KernelContext& context) {
  const auto [alpha, beta] = parameters(context, 0, 0);
  return map(context, [alpha = alpha, beta = beta](auto x) {
    return static_cast<decltype(x)>(alpha * std::tanh(beta * static_cast<double>(x)));
  });
}
Status run_scale(KernelContext& context) {
  const auto scale = static_cast<double>(context.attributes.get_float("scale", 1));
  return map(context,
             [scale](auto x) { return static_cast<decltype(x)>(scale * static_cast<double>(x)); });
}

/// scale * x + bias, one bias a channel of [N, C, H, W].
Status run_image_scaler(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const auto bias = context.attributes.get_floats("bias");
  const auto scale = static_cast<double>(context.attributes.get_float("scale", 1));
  if (x->rank() < 2 || x->dim(1) != static_cast<int64_t>(bias.size()))
    return context.error("bias must have a value for each channel of input, " + to_string(*x));
  TRY(Tensor * y, context.output(0, x->dtype(), x->dims()));
  const int64_t pixels = product(x->dims(), 2, x->rank());
  for (int64_t i = 0; i < x->size(); ++i)
    y->set_double(i, scale * x->get_double(i) +
                         static_cast<double>(bias[static_cast<size_t>(i / pixels % x->dim(1))]));
  return ok();
}

/// border: left, top, right, bottom; or left and top with `scale`: height, width.
Status run_crop(KernelContext& context) {
  TRY(const Tensor x, tensor_at(context, 0));
  const auto border = context.attributes.get_ints("border");
  const auto scale = context.attributes.get_ints("scale");
  if (x.rank() != 4 || border.size() != 4 || (!scale.empty() && scale.size() != 2))
    return context.error("input must have rank 4, border 4 values and scale none or 2: " +
                         to_string(x));
  for (const int64_t width : border)
    if (width < 0 || width > int64_t{1} << 40)
      return context.error("border has the value " + std::to_string(width));
  const int64_t left = border[0], top = border[1];
  int64_t right = x.dim(3) - border[2], bottom = x.dim(2) - border[3];
  if (!scale.empty()) {
    constexpr int64_t kMost = int64_t{1} << 40;
    if (scale[0] < 0 || scale[1] < 0 || scale[0] > kMost || scale[1] > kMost)
      return context.error("scale must be a height and a width");
    bottom = top + scale[0], right = left + scale[1];
  }
  if (left < 0 || top < 0 || right > x.dim(3) || bottom > x.dim(2) || left > right || top > bottom)
    return context.error("border and scale reach out of " + to_string(x));
  Official official(context);
  TRY(Tensor y, official.call("Slice", {x, Tensor::int64s(std::vector<int64_t>{top, left}),
                                        Tensor::int64s(std::vector<int64_t>{bottom, right}),
                                        Tensor::int64s(std::vector<int64_t>{2, 3})}));
  context.set_output(0, std::move(y));
  return ok();
}
Status infer_crop(InferContext& context) {
  const SymShape* x = context.shape(0);
  const auto border = context.attributes.get_ints("border");
  const auto scale = context.attributes.get_ints("scale");
  if (x == nullptr || x->size() != 4 || border.size() != 4) return ok();
  if (scale.size() == 2)
    set_shape(context, 0, {(*x)[0], (*x)[1], SymDim(scale[0]), SymDim(scale[1])});
  else
    set_shape(context, 0,
              {(*x)[0], (*x)[1], (*x)[2] - SymDim(border[1]) - SymDim(border[3]),
               (*x)[3] - SymDim(border[0]) - SymDim(border[2])});
  return ok();
}

Status run_dynamic_slice(KernelContext& context) { return run_as(context, "Slice", 10); }
Status infer_dynamic_slice(InferContext& context) { return infer_as(context, "Slice", 10); }

}  // namespace

OPERATOR(experimental_Affine) = {
    .name = "Affine",
    .domain = "ai.onnx.experimental",
    .doc = "alpha * x + beta",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"alpha", 1.0f},
            {"beta", 0.0f},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_unary,
    .reference = run_affine,
};

OPERATOR(experimental_ParametricSoftplus) = {
    .name = "ParametricSoftplus",
    .domain = "ai.onnx.experimental",
    .doc = "alpha * log(1 + exp(beta * x))",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"alpha", Attr::kFloat},
            {"beta", Attr::kFloat},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_unary,
    .reference = run_parametric_softplus,
};

OPERATOR(experimental_ScaledTanh) = {
    .name = "ScaledTanh",
    .domain = "ai.onnx.experimental",
    .doc = "alpha * tanh(beta * x)",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"alpha", Attr::kFloat},
            {"beta", Attr::kFloat},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_unary,
    .reference = run_scaled_tanh,
};

OPERATOR(experimental_Scale) = {
    .name = "Scale",
    .domain = "ai.onnx.experimental",
    .doc = "scale * x",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"scale", 1.0f},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_unary,
    .reference = run_scale,
};

OPERATOR(experimental_ImageScaler) = {
    .name = "ImageScaler",
    .domain = "ai.onnx.experimental",
    .doc = "scale * x + bias, one bias a channel",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"bias", Attr::kFloats},
            {"scale", 1.0f},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_unary,
    .reference = run_image_scaler,
};

OPERATOR(experimental_Crop) = {
    .name = "Crop",
    .domain = "ai.onnx.experimental",
    .doc = "cuts a border off images",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"border", Attr::kInts},
            {"scale", Attr::kInts},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_crop,
    .reference = run_crop,
};

OPERATOR(experimental_DynamicSlice) = {
    .name = "DynamicSlice",
    .domain = "ai.onnx.experimental",
    .doc = "slices by bounds that are inputs, as Slice-10",
    .versions = {1},
    .inputs =
        {
            {"data", "T"},
            {"starts", "Tind"},
            {"ends", "Tind"},
            {"axes", "Tind", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .types =
        {
            {"T", {{1, kAll}}},
            {"Tind", {{1, kIndices}}},
        },
    .infer = infer_dynamic_slice,
    .reference = run_dynamic_slice,
};

}  // namespace tombolo::ops
