// Activations, as names inside any layer and as layers.

#include <algorithm>

#include "formats/keras/layer.h"

namespace tombolo::keras {
namespace {

using Activation = Value* (*)(LayerCall& call, Value* x);

Value* plain(LayerCall& call, Value* x, Text op) { return call.b.op(op, {x}); }
Value* number(LayerCall& call, Value* like, double value) {
  return call.b.scalar(value, call.b.dtype(like));
}
Value* clip(LayerCall& call, Value* x, double low, double high) {
  return call.b.op("Clip", {x, number(call, x, low), number(call, x, high)});
}

template <const char* kOp>
Value* unary(LayerCall& call, Value* x) {
  return plain(call, x, kOp);
}

constexpr char kRelu[] = "Relu", kSigmoid[] = "Sigmoid", kTanh[] = "Tanh", kSelu[] = "Selu",
               kSoftplus[] = "Softplus", kSoftsign[] = "Softsign", kExp[] = "Exp", kMish[] = "Mish",
               kElu[] = "Elu", kCelu[] = "Celu", kGelu[] = "Gelu", kHardSwish[] = "HardSwish";

Value* identity(LayerCall&, Value* x) { return x; }
/// Not Swish-24: runtimes know and fuse this form, and hardly one has the operator.
Value* silu(LayerCall& call, Value* x) { return call.b.op("Mul", {x, plain(call, x, "Sigmoid")}); }
Value* relu6(LayerCall& call, Value* x) { return clip(call, x, 0, 6); }
Value* softmax(LayerCall& call, Value* x) { return call.b.op("Softmax", {x}, {{"axis", -1}}); }
Value* log_softmax(LayerCall& call, Value* x) {
  return call.b.op("LogSoftmax", {x}, {{"axis", -1}});
}
Value* leaky_relu(LayerCall& call, Value* x) {
  return call.b.op("LeakyRelu", {x}, {{"alpha", 0.2}});
}
/// Keras 2: 0.2 x + 0.5; Keras 3: relu6(x + 3) / 6.
Value* hard_sigmoid(LayerCall& call, Value* x) {
  const bool old = call.keras < 3;
  return call.b.op("HardSigmoid", {x}, {{"alpha", old ? 0.2f : 1.0f / 6.0f}, {"beta", 0.5f}});
}
Value* hard_tanh(LayerCall& call, Value* x) { return clip(call, x, -1, 1); }
Value* hard_shrink(LayerCall& call, Value* x) {
  return call.b.op("Shrink", {x}, {{"lambd", 0.5f}, {"bias", 0.0f}});
}
Value* soft_shrink(LayerCall& call, Value* x) {
  return call.b.op("Shrink", {x}, {{"lambd", 0.5f}, {"bias", 0.5f}});
}
Value* tanh_shrink(LayerCall& call, Value* x) {
  return call.b.op("Sub", {x, plain(call, x, "Tanh")});
}
Value* log_sigmoid(LayerCall& call, Value* x) {
  return plain(call, plain(call, plain(call, x, "Neg"), "Softplus"), "Neg");
}
Value* squareplus(LayerCall& call, Value* x) {
  Value* root =
      plain(call, call.b.op("Add", {call.b.op("Mul", {x, x}), number(call, x, 4)}), "Sqrt");
  return call.b.op("Div", {call.b.op("Add", {x, root}), number(call, x, 2)});
}
Value* glu(LayerCall& call, Value* x) {
  const auto halves = call.b.op_many("Split", {x}, 2, {{"axis", -1}, {"num_outputs", 2}});
  return call.b.op("Mul", {halves[0], plain(call, halves[1], "Sigmoid")});
}
/// 0 below -1, x above 1, (x + 1)^2 / 4 between.
Value* sparse_plus(LayerCall& call, Value* x) {
  Value* up = call.b.op("Add", {x, number(call, x, 1)});
  Value* arc = call.b.op("Div", {call.b.op("Mul", {up, up}), number(call, x, 4)});
  Value* low = call.b.op("LessOrEqual", {x, number(call, x, -1)});
  Value* inner = call.b.op("Where", {low, number(call, x, 0), arc});
  return call.b.op("Where", {call.b.op("Less", {x, number(call, x, 1)}), inner, x});
}
Value* sparse_sigmoid(LayerCall& call, Value* x) {
  return call.b.op("HardSigmoid", {x}, {{"alpha", 0.5f}, {"beta", 0.5f}});
}

struct Row {
  std::string_view name;
  Activation apply;
};
constexpr Row kActivations[] = {
    {"linear", identity},
    {"relu", unary<kRelu>},
    {"relu6", relu6},
    {"sigmoid", unary<kSigmoid>},
    {"tanh", unary<kTanh>},
    {"softmax", softmax},
    {"elu", unary<kElu>},
    {"selu", unary<kSelu>},
    {"softplus", unary<kSoftplus>},
    {"softsign", unary<kSoftsign>},
    {"exponential", unary<kExp>},
    {"hard_sigmoid", hard_sigmoid},
    {"silu", silu},
    {"swish", silu},
    {"gelu", unary<kGelu>},
    {"leaky_relu", leaky_relu},
    {"mish", unary<kMish>},
    {"celu", unary<kCelu>},
    {"glu", glu},
    {"hard_silu", unary<kHardSwish>},
    {"hard_swish", unary<kHardSwish>},
    {"hard_tanh", hard_tanh},
    {"hard_shrink", hard_shrink},
    {"soft_shrink", soft_shrink},
    {"tanh_shrink", tanh_shrink},
    {"log_sigmoid", log_sigmoid},
    {"log_softmax", log_softmax},
    {"squareplus", squareplus},
    {"sparse_plus", sparse_plus},
    {"sparse_sigmoid", sparse_sigmoid},
};

Status activation_layer(LayerCall& call) {
  TRY(Value * y, apply_activation(call, call.x(), call.config["activation"]));
  return call.out(y);
}

/// y = x if x >= threshold, capped at max_value; slope * (x - threshold) below.
Status relu_layer(LayerCall& call) {
  const Json max = call.config["max_value"];
  const double slope = call.config["negative_slope"].double_or(0);
  const double threshold = call.config["threshold"].double_or(0);
  Value* x = call.x();
  if (threshold == 0 && slope == 0) {
    return call.out(max.is_null() ? plain(call, x, "Relu") : clip(call, x, 0, max.double_or(0)));
  }
  if (threshold == 0) {
    Value* y = call.b.op("LeakyRelu", {x}, {{"alpha", slope}});
    if (!max.is_null()) y = call.b.op("Min", {y, number(call, x, max.double_or(0))});
    return call.out(y);
  }
  Value* above = x;
  if (!max.is_null()) above = call.b.op("Min", {x, number(call, x, max.double_or(0))});
  Value* below = number(call, x, 0);
  if (slope != 0) {
    below = call.b.op("Mul",
                      {call.b.op("Sub", {x, number(call, x, threshold)}), number(call, x, slope)});
  }
  Value* high = call.b.op(call.keras < 3 && slope == 0 ? "Greater" : "GreaterOrEqual",
                          {x, number(call, x, threshold)});
  return call.out(call.b.op("Where", {high, above, below}));
}

Status leaky_relu_layer(LayerCall& call) {
  Json slope = call.config["negative_slope"];
  if (slope.is_null()) slope = call.config["alpha"];
  return call.out(call.b.op("LeakyRelu", {call.x()}, {{"alpha", slope.double_or(0.3)}}));
}

Status elu_layer(LayerCall& call) {
  return call.out(call.b.op("Elu", {call.x()}, {{"alpha", call.config["alpha"].double_or(1.0)}}));
}

Status thresholded_relu_layer(LayerCall& call) {
  return call.out(
      call.b.op("ThresholdedRelu", {call.x()}, {{"alpha", call.config["theta"].double_or(1.0)}}));
}

/// alpha has the input's shape without batch, 1 along shared axes.
Status prelu_layer(LayerCall& call) {
  TRY(Value * alpha, call.weight("alpha"));
  return call.out(call.b.op("PRelu", {call.x(), alpha}));
}

Status softmax_layer(LayerCall& call) {
  const Json axis = call.config["axis"];
  GraphBuilder& b = call.b;
  if (call.inputs.size() > 1 || call.kwargs.count("mask")) {
    const auto mask = call.kwargs.find("mask");
    if (call.inputs.size() > 1 || mask->second.is_tensor()) {
      return unsupported("a mask argument is not supported");
    }
  }
  if (!axis.is_array() || axis.size() == 1) {
    const int64_t only = (axis.is_array() ? axis.at(0) : axis).int_or(-1);
    return call.out(b.op("Softmax", {call.x()}, {{"axis", only}}));
  }
  const auto axes = axis.as_ints();
  if (!axes) return not_supported(call, "axis");
  Value* list = b.ints(*axes);
  Value* e = plain(call, b.op("Sub", {call.x(), b.op("ReduceMax", {call.x(), list})}), "Exp");
  return call.out(b.op("Div", {e, b.op("ReduceSum", {e, list})}));
}

constexpr LayerRow kActivationRows[] = {
    {"Activation", activation_layer, MaskRule::kPass},
    {"ReLU", relu_layer, MaskRule::kPass},
    {"LeakyReLU", leaky_relu_layer, MaskRule::kPass},
    {"ELU", elu_layer, MaskRule::kPass},
    {"ThresholdedReLU", thresholded_relu_layer, MaskRule::kPass},
    {"PReLU", prelu_layer, MaskRule::kPass},
    {"Softmax", softmax_layer, MaskRule::kPass},
};

}  // namespace

std::span<const LayerRow> activation_layers() { return kActivationRows; }

Result<Value*> apply_activation(LayerCall& call, Value* x, std::string_view name) {
  for (const Row& row : kActivations)
    if (row.name == name) return row.apply(call, x);
  return unsupported("activation \"" + std::string(name) + "\" is not supported");
}

Result<Value*> apply_activation(LayerCall& call, Value* x, Json activation) {
  if (activation.is_null()) return x;
  if (activation.is_string()) return apply_activation(call, x, activation.string_or(""));
  // A serialized function ({"class_name": "function", "config": "relu"}) or layer.
  if (activation["config"].is_string()) {
    return apply_activation(call, x, activation["config"].string_or(""));
  }
  if (activation["config"]["name"].is_string() &&
      activation["class_name"].string_or("") == "function") {
    return apply_activation(call, x, activation["config"]["name"].string_or(""));
  }
  for (const LayerRow& row : kActivationRows) {
    if (row.class_name == activation["class_name"].string_or("")) {
      return call_inner(call, activation, call.weights, x);
    }
  }
  return unsupported("activation " + activation.to_string() + " is not supported");
}

}  // namespace tombolo::keras
