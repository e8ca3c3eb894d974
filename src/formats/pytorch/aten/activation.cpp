// Activation functions.

#include <algorithm>
#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

void plain(C& c) { c.out(c.op(c.detail(), {c.x("self")})); }

void relu(C& c) {
  if (is_unsigned_integer(c.type("self"))) return c.out(c.x("self"));
  plain(c);
}

void relu6(C& c) {
  Value* x = c.x("self");
  c.out(c.op("Clip", {x, c.like(0, x), c.like(6, x)}));
}

void hardtanh(C& c) {
  Value* x = c.x("self");
  double least = c.real("min_val");
  if (is_unsigned_integer(c.dtype(x))) least = std::max(least, 0.0);
  c.out(c.op("Clip", {x, c.like(least, x), c.like(c.real("max_val"), x)}));
}

void leaky_relu(C& c) {
  c.out(c.op("LeakyRelu", {c.x("self")}, {{"alpha", c.real("negative_slope")}}));
}

void gelu(C& c) {
  Value* x = c.x("self");
  if (c.text("approximate") == "tanh") return c.out(c.op("Gelu", {x}, {{"approximate", "tanh"}}));
  c.out(c.op("Gelu", {x}));
}

void elu(C& c) {
  // scale * (x > 0 ? x : alpha * (exp(x * input_scale) - 1))
  Value* x = c.x("self");
  const double alpha = c.real("alpha"), scale = c.real("scale"), inner = c.real("input_scale");
  if (inner == 1) {
    Value* y = c.op("Elu", {x}, {{"alpha", alpha}});
    return c.out(scale == 1 ? y : c.mul(y, c.like(scale, y)));
  }
  Value* below = c.op("Elu", {c.mul(x, c.like(inner, x))}, {{"alpha", alpha * scale}});
  c.out(c.where(c.op("Greater", {x, c.like(0, x)}), c.mul(x, c.like(scale, x)), below));
}

void celu(C& c) { c.out(c.op("Celu", {c.x("self")}, {{"alpha", c.real("alpha")}})); }

void selu(C& c) {
  c.out(c.op("Selu", {c.x("self")},
             {{"alpha", 1.6732632423543772f}, {"gamma", 1.0507009873554805f}}));
}

void silu(C& c) { c.out(c.op("Swish", {c.x("self")})); }

void hardsigmoid(C& c) {
  c.out(c.op("HardSigmoid", {c.x("self")}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}}));
}

void softplus(C& c) {
  Value* x = c.x("self");
  const double beta = c.real("beta"), threshold = c.real("threshold");
  Value* scaled = beta == 1 ? x : c.mul(x, c.like(beta, x));
  Value* soft = c.op("Softplus", {scaled});
  if (beta != 1) soft = c.div(soft, c.like(beta, x));
  // Above the threshold it is the identity; from 20 on there is no difference to see in float32.
  if (threshold == 20 && c.dtype(x) == DType::kFloat32) return c.out(soft);
  c.out(c.where(c.op("Greater", {scaled, c.like(threshold, x)}), x, soft));
}

void softshrink(C& c) {
  const double lambda = c.real("lambd");
  c.out(c.op("Shrink", {c.x("self")}, {{"lambd", lambda}, {"bias", lambda}}));
}
void hardshrink(C& c) {
  c.out(c.op("Shrink", {c.x("self")}, {{"lambd", c.real("lambd")}, {"bias", 0.0f}}));
}
void tanhshrink(C& c) {
  Value* x = c.x("self");
  c.out(c.sub(x, c.op("Tanh", {x})));
}
void threshold(C& c) {
  Value* x = c.x("self");
  // What is no number stays.
  Value* low = c.op("LessOrEqual", {x, c.operand("threshold", c.dtype(x))});
  c.out(c.where(low, c.operand("value", c.dtype(x)), x));
}

void log_sigmoid(C& c) {
  Value* x = c.x("self");
  c.out(c.op("Neg", {c.op("Softplus", {c.op("Neg", {x})})}));
  if (c.schema().results.size() == 2) c.out(c.like(0, x));
}

void softmax(C& c) {
  DType type = c.dtype("dtype").value_or(DType::kUndefined);
  Value* x = c.cast(c.x("self"), type);
  if (!is_float(c.dtype(x))) x = c.cast(x, c.default_float);
  const int64_t dim = c.integer("dim");
  c.out(c.at_least_1d(x, [&](Value* v) {
    return c.op(c.detail(), {v}, {{"axis", c.axis(dim, c.rank(v))}});
  }));
}

/// Rows that are masked out whole give 0, not NaN.
void safe_softmax(C& c) {
  Value* x = c.cast(c.x("self"), c.dtype("dtype").value_or(DType::kUndefined));
  const int64_t dim = c.axis(c.integer("dim"), c.rank(x));
  Value* y = c.op("Softmax", {x}, {{"axis", dim}});
  Value* high = c.reduce("ReduceMax", x, {dim}, true);
  Value* masked = c.op("IsInf", {high}, {{"detect_positive", 0}});
  c.out(c.where(masked, c.like(0, y), y));
}

void softmin(C& c) {
  Value* x = c.op("Neg", {c.x("self")});
  c.out(c.op("Softmax", {x}, {{"axis", c.axis(c.integer("dim"), c.rank(x))}}));
}

void prelu(C& c) {
  Value *x = c.x("self"), *slope = c.x("weight");
  const int64_t r = c.rank(x);
  // One slope for each channel, axis 1.
  if (c.rank(slope) == 1 && c.known(slope, 0) != 1 && r > 2) {
    Ints axes;
    for (int64_t i = 1; i < r - 1; ++i) axes.push_back(i);
    slope = c.unsqueeze(slope, axes);
  }
  c.out(c.op("PRelu", {x, slope}));
}

void glu(C& c) {
  Value* x = c.x("self");
  const int64_t dim = c.axis(c.integer("dim"), c.rank(x));
  const Values parts = c.b.op_many("Split", {x}, 2, {{"axis", dim}, {"num_outputs", int64_t{2}}});
  c.out(c.mul(parts[0], c.op("Sigmoid", {parts[1]})));
}

void rrelu(C& c) {
  if (c.has_arg("training") && c.flag("training")) return c.refuse("it draws random numbers");
  const double slope = (c.real("lower") + c.real("upper")) / 2;
  c.out(c.op("LeakyRelu", {c.x("self")}, {{"alpha", slope}}));
}

/// dropout: the identity, unless it is training.
void dropout(C& c) {
  const std::string_view source = c.has_arg("self") ? "self" : "input";
  if (c.has_arg("train") && c.flag("train")) {
    const double p = c.given("p") ? c.real("p") : 0.5;
    if (p != 0) return c.refuse("it draws random numbers", "export the model after model.eval()");
  }
  c.out_arg(c.arg(source));  // the tensor itself: what is written to the one is seen by the other
}

void native_dropout(C& c) {
  if (c.given("train") && c.flag("train") && c.real("p") != 0)
    return c.refuse("it draws random numbers", "export the model after model.eval()");
  Value* x = c.x("input");
  c.out(x);
  c.out(c.full(c.sizes(x), 1, DType::kBool));
}

void native_dropout_backward(C& c) {
  Value* g = c.x("grad_output");
  c.out(c.mul(c.mul(g, c.cast(c.x("mask"), c.dtype(g))), c.like(c.real("scale"), g)));
}

constexpr Row kActivationRows[] = {
    {"relu(Tensor self) -> Tensor", relu, "Relu"},
    {"relu6(Tensor self) -> Tensor", relu6},
    {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", hardtanh},
    {"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", leaky_relu},
    {"gelu(Tensor self, *, str approximate='none') -> Tensor", gelu},
    {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", elu},
    {"celu(Tensor self, Scalar alpha=1.0) -> Tensor", celu},
    {"selu(Tensor self) -> Tensor", selu},
    {"silu(Tensor self) -> Tensor", silu},
    {"mish(Tensor self) -> Tensor", plain, "Mish"},
    {"hardsigmoid(Tensor self) -> Tensor", hardsigmoid},
    {"hardswish(Tensor self) -> Tensor", plain, "HardSwish"},
    {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", softplus},
    {"softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", softshrink},
    {"hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", hardshrink},
    {"tanhshrink(Tensor self) -> Tensor", tanhshrink},
    {"softsign(Tensor self) -> Tensor", plain, "Softsign"},
    {"threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", threshold},
    {"log_sigmoid(Tensor self) -> Tensor", log_sigmoid},
    {"log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", log_sigmoid},
    {"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax, "Softmax"},
    {"_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", softmax, "Softmax"},
    {"special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax, "Softmax"},
    {"_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", safe_softmax},
    {"log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax,
     "LogSoftmax"},
    {"_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", softmax, "LogSoftmax"},
    {"special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", softmax,
     "LogSoftmax"},
    {"softmin(Tensor self, int dim) -> Tensor", softmin},
    {"prelu(Tensor self, Tensor weight) -> Tensor", prelu},
    {"_prelu_kernel(Tensor self, Tensor weight) -> Tensor", prelu},
    {"glu(Tensor self, int dim=-1) -> Tensor", glu},
    {"rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
     "Generator? generator=None) -> Tensor",
     rrelu},
    {"rrelu_with_noise(Tensor self, Tensor noise, Scalar lower=0.125, Scalar "
     "upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
     rrelu},
    {"rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar "
     "upper=0.3333333333333333, bool training=False, Generator? generator=None) -> (Tensor, "
     "Tensor)",
     rrelu},
    {"dropout(Tensor input, float p, bool train) -> Tensor", dropout},
    {"feature_dropout(Tensor input, float p, bool train) -> Tensor", dropout},
    {"alpha_dropout(Tensor input, float p, bool train) -> Tensor", dropout},
    {"feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", dropout},
    {"native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", native_dropout},
    {"native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
     native_dropout_backward},
};

}  // namespace

std::span<const Row> activation_rows() { return kActivationRows; }

}  // namespace tombolo::pytorch
