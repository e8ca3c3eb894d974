#include "ops/kernels/loss.h"

#include <string>

namespace tombolo::ops {

Status negative_log_likelihood(KernelContext& context, const Tensor& log_probabilities,
                               DType dtype) {
  const Tensor& x = log_probabilities;
  if (x.rank() < 2)
    return context.error("the input must have a rank of at least 2, is " + to_string(x));
  const int64_t classes = x.dim(1);
  Dims dims = x.dims();
  dims.erase(1);
  TRY(const Tensor* target, context.input(1));
  CHECK_OK(check_dims(context, "the target", *target, dims));
  if (!is_integer(target->dtype()))
    return context.error("the target must be a tensor of integers, is " + to_string(*target));
  TRY(Tensor weights, optional_as<double>(context, 2));
  if (!absent(weights)) CHECK_OK(check_dims(context, "the weights", weights, {{classes}}));
  const auto ignored = context.attributes.get_int("ignore_index");
  const Text reduction = context.attributes.get_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return context.error("reduction \"" + std::string(reduction) + "\" is not known");

  TRY(Tensor losses, context.allocate(DType::kFloat64, dims));
  const int64_t plane = product(x.dims(), 2, x.rank());
  double sum = 0, total_weight = 0;
  for (int64_t i = 0; i < losses.size(); ++i) {
    const int64_t label = target->get_int64(i);
    double& loss = losses.data<double>()[i];
    loss = 0;
    if (ignored && label == *ignored) continue;
    if (label < 0 || label >= classes)
      return context.error("the target has the value " + std::to_string(label) + ", there are " +
                           std::to_string(classes) + " classes");
    const double weight = absent(weights) ? 1 : weights.data<double>()[label];
    loss = -weight * x.get_double((i / plane * classes + label) * plane + i % plane);
    sum += loss;
    total_weight += weight;
  }
  if (reduction == "none") return give(context, 0, dtype, std::move(losses));
  TRY(Tensor result, context.allocate(DType::kFloat64, {}));
  result.data<double>()[0] = reduction == "sum" ? sum : sum / total_weight;
  return give(context, 0, dtype, std::move(result));
}

}  // namespace tombolo::ops
