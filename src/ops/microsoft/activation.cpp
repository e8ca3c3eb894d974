#include "ops/microsoft/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/microsoft/official.h"

namespace tombolo::ops {

namespace {

double relu(double x, double, double) { return x < 0 ? 0 : x; }
double tanh_of(double x, double, double) { return std::tanh(x); }
double sigmoid(double x, double, double) { return 1 / (1 + std::exp(-x)); }
double leaky_relu(double x, double alpha, double) { return x < 0 ? alpha * x : x; }
double clip(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
double hard_sigmoid(double x, double alpha, double beta) {
  return std::clamp(alpha * x + beta, 0.0, 1.0);
}
double hard_swish(double x, double alpha, double beta) {
  return x * std::clamp(alpha * x + beta, 0.0, 1.0);
}
double elu(double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x) : x; }
double selu(double x, double alpha, double gamma) {
  return gamma * (x < 0 ? alpha * std::expm1(x) : x);
}
double celu(double x, double alpha, double) {
  return std::max(0.0, x) + std::min(0.0, alpha * std::expm1(x / alpha));
}
double thresholded_relu(double x, double alpha, double) { return x > alpha ? x : 0; }
double softplus(double x, double, double) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
double softsign(double x, double, double) { return x / (1 + std::fabs(x)); }
double gelu(double x, double, double) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }
double scaled_tanh(double x, double alpha, double beta) { return alpha * std::tanh(beta * x); }
double parametric_softplus(double x, double alpha, double beta) {
  return alpha * softplus(beta * x, 0, 0);
}
double affine(double x, double alpha, double beta) { return alpha * x + beta; }

struct Row {
  const char* name;
  double (*function)(double, double, double);
  double alpha, beta;  ///< defaults
};
constexpr Row kRows[] = {
    {"Relu", relu, 0, 0},
    {"Tanh", tanh_of, 0, 0},
    {"Sigmoid", sigmoid, 0, 0},
    {"LeakyRelu", leaky_relu, 0.01, 0},
    {"Clip", clip, -3.402823466e38, 3.402823466e38},
    {"HardSigmoid", hard_sigmoid, 0.2, 0.5},
    {"HardSwish", hard_swish, 1.0 / 6, 0.5},
    {"Elu", elu, 1, 0},
    {"Selu", selu, 1.6732632423543772, 1.0507009873554805},
    {"Celu", celu, 1, 0},
    {"ThresholdedRelu", thresholded_relu, 1, 0},
    {"Softplus", softplus, 0, 0},
    {"Softsign", softsign, 0, 0},
    {"Gelu", gelu, 0, 0},
    {"ScaledTanh", scaled_tanh, 1, 1},
    {"ParametricSoftplus", parametric_softplus, 1, 1},
    {"Affine", affine, 1, 0},
};

}  // namespace

Result<FusedActivation> read_activation(const KernelContext& context) {
  FusedActivation result;
  const Text name = context.attributes.get_string("activation", "");
  if (name.empty()) return result;
  if (name == "Softmax") {
    result.softmax = true;
    result.axis = context.attributes.get_int("activation_axis", -1);
    return result;
  }
  for (const Row& row : kRows) {
    if (name != row.name) continue;
    result.function = row.function;
    result.alpha = row.alpha;
    result.beta = row.beta;
    const auto list = context.attributes.get_floats("activation_params");
    if (!list.empty()) result.alpha = static_cast<double>(list[0]);
    if (list.size() > 1) result.beta = static_cast<double>(list[1]);
    if (context.attributes.has("activation_alpha"))
      result.alpha = static_cast<double>(context.attributes.get_float("activation_alpha", 0));
    const char* second = name == "Selu" ? "activation_gamma" : "activation_beta";
    if (context.attributes.has(second))
      result.beta = static_cast<double>(context.attributes.get_float(second, 0));
    return result;
  }
  return context.error("the activation \"" + std::string(name) + "\" is not known");
}

Status FusedActivation::apply(const KernelContext& context, Tensor& tensor) const {
  if (softmax) {
    Official official(context);
    Node& node = official.node("Softmax");
    node.set_int("axis", axis);
    TRY(tensor, official.call(node, {tensor}));
    return ok();
  }
  if (function == nullptr) return ok();
  const auto run = [&]<typename T>(T) {
    T* x = tensor.data<T>();
    context.parallel_for(tensor.size(), 1 << 12, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        x[i] = static_cast<T>(function(static_cast<double>(x[i]), alpha, beta));
    });
  };
  if (tensor.dtype() == DType::kFloat64)
    run(double{});
  else
    run(float{});
  return ok();
}

}  // namespace tombolo::ops
