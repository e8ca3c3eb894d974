// Elementwise operators on quantised tensors: to numbers, computed, quantised again.

#include <cmath>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/quantize.h"
#include "ops/microsoft/linear.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status infer_two(InferContext& context, size_t a, size_t b) {
  const SymShape* left = context.shape(a);
  const SymShape* right = context.shape(b);
  if (left == nullptr || right == nullptr) return ok();
  TRY(SymShape shape, broadcast(*left, *right));
  set_shape(context, 0, std::move(shape));
  return ok();
}
Status infer_qlinear_binary(InferContext& context) { return infer_two(context, 0, 3); }

template <typename Function>
Status binary(KernelContext& context, Function&& function) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor left, read_linear(context, 0));
  TRY(const Tensor right, read_linear(context, 3));
  TRY(const Dims dims, broadcast_dims(left.dims(), right.dims()));
  TRY(const Tensor l, expanded<float>(context, "A", left, dims));
  TRY(const Tensor r, expanded<float>(context, "B", right, dims));
  TRY(Tensor y, context.allocate(DType::kFloat32, dims));
  for (int64_t i = 0; i < y.size(); ++i)
    y.data<float>()[i] = function(l.data<float>()[i], r.data<float>()[i]);
  return give_linear(context, y, 6, 7, a->dtype());
}
Status run_qlinear_add(KernelContext& context) {
  return binary(context, [](float a, float b) { return a + b; });
}
Status run_qlinear_mul(KernelContext& context) {
  return binary(context, [](float a, float b) { return a * b; });
}

template <typename Function>
Status unary(KernelContext& context, Function&& function) {
  TRY(const Tensor* x, context.input(0));
  TRY(Tensor values, read_linear(context, 0));
  for (float& value : values.span<float>()) value = function(value);
  return give_linear(context, values, 3, 4, x->dtype());
}
Status run_qlinear_leaky_relu(KernelContext& context) {
  const float alpha = context.attributes.get_float("alpha", 0.01f);
  return unary(context, [alpha](float x) { return x < 0 ? alpha * x : x; });
}
Status run_qlinear_sigmoid(KernelContext& context) {
  return unary(context, [](float x) {
    return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x))));
  });
}

Status infer_qlinear_where(InferContext& context) {
  const SymShape* condition = context.shape(0);
  const SymShape* x = context.shape(1);
  const SymShape* y = context.shape(4);
  if (condition == nullptr || x == nullptr || y == nullptr) return ok();
  TRY(const SymShape values, broadcast(*x, *y));
  TRY(SymShape all, broadcast(*condition, values));
  set_shape(context, 0, std::move(all));
  return ok();
}

Status run_qlinear_where(KernelContext& context) {
  TRY(const Tensor condition, tensor_at(context, 0));
  TRY(const Tensor* x, context.input(1));
  TRY(const Tensor left, read_linear(context, 1));
  TRY(const Tensor right, read_linear(context, 4));
  Official official(context);
  TRY(const Tensor chosen, official.call("Where", {condition, left, right}));
  return give_linear(context, chosen, 7, 8, x->dtype());
}

/// Triples of tensor, scale and zero point from input 2 on.
Status run_qlinear_concat(KernelContext& context) {
  TRY(const Tensor* zero, context.input(1));
  TRY(const float scale, scalar_scale(context, 0, "Y_scale"));
  if (context.input_count() < 5 || (context.input_count() - 2) % 3 != 0)
    return context.error("inputs must be triples of tensor, scale and zero point");
  Official official(context);
  Node& node = official.node("Concat");
  TRY(const Tensor* first, context.input(2));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(first->rank())));
  node.set_int("axis", axis);
  const DType type = zero->dtype();
  const IntegerRange range = range_of(type);
  TRY(const int64_t offset, scalar_zero_point(context, 1, "Y_zero_point", type));
  std::vector<Tensor> parts;
  for (size_t i = 2; i < context.input_count(); i += 3) {
    TRY(const Tensor* given, context.input(i));
    TRY(const float own, scalar_scale(context, i + 1, "a scale"));
    TRY(const int64_t own_zero, scalar_zero_point(context, i + 2, "a zero point", given->dtype()));
    // Codes that mean the same stay as they are.
    if (given->dtype() == type && own == scale && own_zero == offset) {
      parts.push_back(*given);
      continue;
    }
    TRY(const Tensor values, read_linear(context, i));
    TRY(Tensor codes, context.allocate(type, values.dims()));
    for (int64_t j = 0; j < values.size(); ++j)
      codes.set_int64(
          j, quantized(static_cast<double>(values.data<float>()[j] / scale), offset, range));
    parts.push_back(std::move(codes));
  }
  TRY(std::vector<RunValue> joined, official.run(node, parts));
  context.set_output(0, std::move(joined[0]));
  return ok();
}

Status infer_qlinear_concat(InferContext& context) {
  if (context.input_count() < 5) return ok();
  SymShape joined;
  for (size_t i = 2; i < context.input_count(); i += 3) {
    const SymShape* part = context.shape(i);
    if (part == nullptr) return ok();
    TRY(const size_t axis,
        checked_axis(context, context.attributes.get_int("axis", 0), part->size()));
    if (i == 2) {
      joined = *part;
      continue;
    }
    if (part->size() != joined.size()) return context.error("the inputs differ in rank");
    for (size_t k = 0; k < joined.size(); ++k) {
      if (k == axis) {
        joined[k] = joined[k] + (*part)[k];
        continue;
      }
      TRY(joined[k], unify_dims(context, joined[k], (*part)[k], "axes that are not joined"));
    }
  }
  set_shape(context, 0, std::move(joined));
  return ok();
}

}  // namespace

OPERATOR(microsoft_QLinearAdd) = {
    .name = "QLinearAdd",
    .domain = "com.microsoft",
    .doc = "a + b of quantised tensors, quantised again",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"A_scale", "tensor(float)"},
            {"A_zero_point", "T", kOptional},
            {"B", "T"},
            {"B_scale", "tensor(float)"},
            {"B_zero_point", "T", kOptional},
            {"C_scale", "tensor(float)"},
            {"C_zero_point", "T", kOptional},
        },
    .outputs =
        {
            {"C", "T"},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_qlinear_binary,
    .reference = run_qlinear_add,
};

OPERATOR(microsoft_QLinearMul) = {
    .name = "QLinearMul",
    .domain = "com.microsoft",
    .doc = "a * b of quantised tensors, quantised again",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"A_scale", "tensor(float)"},
            {"A_zero_point", "T", kOptional},
            {"B", "T"},
            {"B_scale", "tensor(float)"},
            {"B_zero_point", "T", kOptional},
            {"C_scale", "tensor(float)"},
            {"C_zero_point", "T", kOptional},
        },
    .outputs =
        {
            {"C", "T"},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_qlinear_binary,
    .reference = run_qlinear_mul,
};

OPERATOR(microsoft_QLinearLeakyRelu) = {
    .name = "QLinearLeakyRelu",
    .domain = "com.microsoft",
    .doc = "LeakyRelu of a quantised tensor, quantised again",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"X_scale", "tensor(float)"},
            {"X_zero_point", "T", kOptional},
            {"Y_scale", "tensor(float)"},
            {"Y_zero_point", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"alpha", 0.01f},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_unary,
    .reference = run_qlinear_leaky_relu,
};

OPERATOR(microsoft_QLinearSigmoid) = {
    .name = "QLinearSigmoid",
    .domain = "com.microsoft",
    .doc = "sigmoid of a quantised tensor, quantised again",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"X_scale", "tensor(float)"},
            {"X_zero_point", "T", kOptional},
            {"Y_scale", "tensor(float)"},
            {"Y_zero_point", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_unary,
    .reference = run_qlinear_sigmoid,
};

OPERATOR(microsoft_QLinearWhere) = {
    .name = "QLinearWhere",
    .domain = "com.microsoft",
    .doc = "chooses between quantised tensors, quantised again",
    .versions = {1},
    .inputs =
        {
            {"condition", "B"},
            {"X", "T"},
            {"x_scale", "TF"},
            {"x_zero_point", "T"},
            {"Y", "T"},
            {"y_scale", "TF"},
            {"y_zero_point", "T"},
            {"z_scale", "TF"},
            {"z_zero_point", "T"},
        },
    .outputs =
        {
            {"Z", "T"},
        },
    .types =
        {
            {"B", {{1, kBool}}},
            {"TF", {{1, kF32}}},
            {"T", {{1, kInt8s}}},
        },
    .infer = infer_qlinear_where,
    .reference = run_qlinear_where,
};

OPERATOR(microsoft_QLinearConcat) = {
    .name = "QLinearConcat",
    .domain = "com.microsoft",
    .doc = "joins quantised tensors under one scale",
    .versions = {1},
    .inputs =
        {
            {"Y_scale", "TF"},
            {"Y_zero_point", "T8"},
            {"inputs", "TV", kVariadic, {}, 1, kMixed},
        },
    .outputs =
        {
            {"Y", "T8"},
        },
    .attributes =
        {
            {"axis", required(Attr::kInt)},
        },
    .types =
        {
            {"T8", {{1, kInt8s}}},
            {"TF", {{1, kF32}}},
            {"TV", {{1, kInt8s | kF32}}},
        },
    .infer = infer_qlinear_concat,
    .reference = run_qlinear_concat,
};

}  // namespace tombolo::ops
