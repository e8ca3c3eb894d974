#pragma once

// The kernels of support-vector machines.

#include <cmath>
#include <string>

#include "ops/kernels/ml.h"

namespace tombolo::ops {

struct SvmKernel {
  enum class Type : uint8_t { kLinear, kPoly, kRbf, kSigmoid };
  Type type = Type::kLinear;
  double gamma = 0, coef0 = 0, degree = 0;

  static Result<SvmKernel> read(const KernelContext& context) {
    SvmKernel kernel;
    const Text name = context.attributes.get_string("kernel_type", "LINEAR");
    if (name == "POLY")
      kernel.type = Type::kPoly;
    else if (name == "RBF")
      kernel.type = Type::kRbf;
    else if (name == "SIGMOID")
      kernel.type = Type::kSigmoid;
    else if (name != "LINEAR")
      return context.error("kernel_type \"" + std::string(name) + "\" is not known");
    const auto parameters = context.attributes.get_floats("kernel_params");
    if (!parameters.empty() && parameters.size() != 3)
      return context.error("kernel_params has " + std::to_string(parameters.size()) +
                           " values, needs 3");
    if (!parameters.empty()) {
      kernel.gamma = static_cast<double>(parameters[0]);
      kernel.coef0 = static_cast<double>(parameters[1]);
      kernel.degree = static_cast<double>(parameters[2]);
    }
    return kernel;
  }

  double operator()(const double* x, const float* vector, int64_t features) const {
    double sum = 0;
    for (int64_t i = 0; i < features; ++i) {
      const double v = static_cast<double>(vector[i]);
      sum += type == Type::kRbf ? (x[i] - v) * (x[i] - v) : x[i] * v;
    }
    switch (type) {
      case Type::kPoly:
        return std::pow(gamma * sum + coef0, degree);
      case Type::kSigmoid:
        return std::tanh(gamma * sum + coef0);
      case Type::kRbf:
        return std::exp(-gamma * sum);
      default:
        return sum;
    }
  }
};

}  // namespace tombolo::ops
