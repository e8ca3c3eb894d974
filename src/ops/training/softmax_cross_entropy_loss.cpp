#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
