#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/loss.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_negative_log_likelihood_loss(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (!is_float(x->dtype()))
    return context.error("the input must be a tensor of floats, is " + to_string(*x));
  return negative_log_likelihood(context, *x, x->dtype());
}

}  // namespace

namespace {
Status infer_nll_loss(InferContext& context) {
  const Text reduction = context.attributes.get_string("reduction", "mean");
  const SymShape* x = context.shape(0);
  const SymShape* target = context.shape(1);
  if (x != nullptr && x->size() < 2)
    return context.error("input must be [N, C, ...], but its shape is " + shape_to_string(*x));
  if (x != nullptr && target != nullptr && target->size() + 1 != x->size())
    return context.error("target of shape " + shape_to_string(*target) +
                         " must have one axis less than input of shape " + shape_to_string(*x));
  if (reduction == "none") {
    if (target != nullptr) set_shape(context, 0, *target);
  } else {
    set_shape(context, 0, {});
  }
  return ok();
}
}  // namespace

/// Picks each target's score; ignored targets read class 0 and then count as nothing.
static Status body_of_negative_log_likelihood_loss(FunctionContext& context) {
  const DType type = context.input_type(0), index_type = context.input_type(1);
  if (type == DType::kUndefined || index_type == DType::kUndefined)
    return runtime_error("the element types of the inputs are not known");
  const auto cast = [](DType to, std::string_view from) {
    return "Cast <to = " + std::to_string(static_cast<int>(to)) + "> (" + std::string(from) + ")";
  };
  const Text reduction = context.attributes.get_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return usage_error("reduction must be none, sum or mean, not " + std::string(reduction));
  const bool ignores = context.attributes.has("ignore_index");
  const bool weighted = context.has_input(2);
  const bool axes_input = context.opset >= 13;  // an attribute before

  if (axes_input) context.line("class_axis = Constant <value_ints = [1]> ()");
  context.line(axes_input ? "classes = Unsqueeze (target, class_axis)"
                          : "classes = Unsqueeze <axes = [1]> (target)");
  if (ignores) {
    context.line("ignored_i = Constant <value_int: int = @ignore_index> ()");
    context.line("ignored = " + cast(index_type, "ignored_i"));
    context.line("skip = Equal (classes, ignored)");
    context.line("first_i = Constant <value_int = 0> ()");
    context.line("first = " + cast(index_type, "first_i"));
    context.line("safe = Where (skip, first, classes)");
    context.line("nothing_f = Constant <value = float {0}> ()");
    context.line("nothing = " + cast(type, "nothing_f"));
  } else {
    context.line("safe = Identity (classes)");
  }
  context.line("score = GatherElements <axis = 1> (input, safe)");
  context.line("negated = Neg (score)");
  if (weighted) {
    context.line("factor = Gather (weight, safe)");
    context.line("costs = Mul (negated, factor)");
  } else {
    context.line("costs = Identity (negated)");
  }
  context.line(ignores ? "counted = Where (skip, nothing, costs)" : "counted = Identity (costs)");
  const std::string squeeze =
      axes_input ? " = Squeeze (counted, class_axis)" : " = Squeeze <axes = [1]> (counted)";
  if (reduction == "none") {
    context.line("loss" + squeeze);
  } else if (reduction == "sum") {
    context.line("loss = ReduceSum <keepdims = 0> (counted)");
  } else if (!weighted && !ignores) {
    context.line("loss = ReduceMean <keepdims = 0> (counted)");
  } else {
    if (!weighted) {
      context.line("one_f = Constant <value = float {1}> ()");
      context.line("factor = " + cast(type, "one_f"));
    }
    context.line(ignores ? "share = Where (skip, nothing, factor)" : "share = Identity (factor)");
    context.line("sum = ReduceSum <keepdims = 0> (counted)");
    context.line("total = ReduceSum <keepdims = 0> (share)");
    context.line("loss = Div (sum, total)");
  }
  return ok();
}

OPERATOR(NegativeLogLikelihoodLoss) = {
    .name = "NegativeLogLikelihoodLoss",
    .doc = "minus the score of the target class, weighted and reduced",
    .versions = {12, 13, 22},
    .inputs =
        {
            {"input", "T"},
            {"target", "Tind"},
            {"weight", "T", kOptional},
        },
    .outputs = {{"loss", "T"}},
    .attributes =
        {
            {"ignore_index", Attr::kInt},
            {"reduction", "mean"},
        },
    .types =
        {
            {"T", {{12, kFloats}, {22, kBf16}}},
            {"Tind", {{12, kIndices}}},
        },
    .functions =
        {
            {.versions = {.until = 12},
             .opset = 12,
             .builder = body_of_negative_log_likelihood_loss},
            {.versions = {.since = 13, .until = 21},
             .opset = 13,
             .builder = body_of_negative_log_likelihood_loss},
            {.versions = {.since = 22},
             .opset = 22,
             .builder = body_of_negative_log_likelihood_loss},
        },
    .infer = infer_nll_loss,
    .reference = run_negative_log_likelihood_loss,
};

}  // namespace tombolo::ops
