#include <algorithm>
#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/loss.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_softmax_cross_entropy_loss(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->rank() < 2)
    return context.error("scores must have a rank of at least 2, is " + to_string(*x));
  TRY(Tensor scores, as<double>(context, *x));
  TRY(Tensor logs, context.allocate(DType::kFloat64, x->dims()));
  const int64_t classes = x->dim(1), plane = product(x->dims(), 2, x->rank());
  const int64_t lines = x->size() == 0 ? 0 : x->size() / classes;
  for (int64_t line = 0; line < lines; ++line) {
    const double* from = scores.data<double>() + line / plane * classes * plane + line % plane;
    double* to = logs.data<double>() + (from - scores.data<double>());
    double most = from[0], sum = 0;
    for (int64_t c = 1; c < classes; ++c) most = std::max(most, from[c * plane]);
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(from[c * plane] - most);
    for (int64_t c = 0; c < classes; ++c) to[c * plane] = from[c * plane] - most - std::log(sum);
  }
  CHECK_OK(negative_log_likelihood(context, logs, x->dtype()));
  return give(context, 1, x->dtype(), std::move(logs));
}

}  // namespace

namespace {
Status infer_softmax_cross_entropy_loss(InferContext& context) {
  const Text reduction = context.attributes.get_string("reduction", "mean");
  const SymShape* scores = context.shape(0);
  const SymShape* labels = context.shape(1);
  if (scores != nullptr && labels != nullptr && labels->size() + 1 != scores->size())
    return context.error("labels of shape " + shape_to_string(*labels) +
                         " must have one axis less than scores of shape " +
                         shape_to_string(*scores));
  if (reduction == "none") {
    if (labels != nullptr) set_shape(context, 0, *labels);
  } else {
    set_shape(context, 0, {});
  }
  if (scores != nullptr) set_shape(context, 1, *scores);
  return ok();
}
}  // namespace

OPERATOR(SoftmaxCrossEntropyLoss) = {
    .name = "SoftmaxCrossEntropyLoss",
    .doc = "negative log likelihood of log softmax",
    .versions = {12, 13},
    .inputs =
        {
            {"scores", "T"},
            {"labels", "Tind"},
            {"weights", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"log_prob", "T", kOptional},
        },
    .attributes =
        {
            {"ignore_index", Attr::kInt},
            {"reduction", "mean"},
        },
    .types =
        {
            {"T", {{12, kFloats}, {13, kBf16}}},
            {"Tind", {{12, kIndices}}},
        },
    .functions =
        {
            {.versions = {.until = 12}, .opset = 12, .text = R"(
greatest = ReduceMax <axes = [1]> (scores)
shifted = Sub (scores, greatest)
exponential = Exp (shifted)
sum = ReduceSum <axes = [1]> (exponential)
logarithm = Log (sum)
log_prob = Sub (shifted, logarithm)
output = NegativeLogLikelihoodLoss <reduction: string = @reduction, ignore_index: int = @ignore_index> (log_prob, labels, weights)
)"},
            {.versions = {.since = 13}, .opset = 13, .text = R"(
log_prob = LogSoftmax <axis = 1> (scores)
output = NegativeLogLikelihoodLoss <reduction: string = @reduction, ignore_index: int = @ignore_index> (log_prob, labels, weights)
)"},
        },
    .infer = infer_softmax_cross_entropy_loss,
    .reference = run_softmax_cross_entropy_loss,
};

}  // namespace tombolo::ops
