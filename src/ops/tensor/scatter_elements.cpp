#include "ops/infer_helpers.h"
#include "ops/kernels/scatter.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_scatter_elements(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* data = context.shape(0);
  const SymShape* indices = context.shape(1);
  if (data != nullptr && indices != nullptr && data->size() != indices->size())
    return context.error("data of shape " + shape_to_string(*data) + " and indices of shape " +
                         shape_to_string(*indices) + " must have one rank");
  return ok();
}
Status run_scatter_elements(KernelContext& context) { return scatter_elements(context); }

}  // namespace

namespace {

/// Its first name.
Status step_scatter(StepContext& step) {
  CHECK_OK(step_axis_from_front(step));
  step.node.set_op_type("Scatter");
  return ok();
}

Status step_no_extremum(StepContext& step) {
  const Text reduction = step.get_string("reduction", "none");
  if (reduction == "max" || reduction == "min")
    return step.cannot("it had no reduction by " + std::string(reduction));
  return ok();
}

}  // namespace

OPERATOR(ScatterElements) = {
    .name = "ScatterElements",
    .doc = "a copy with elements along an axis replaced or combined",
    .versions = {11, 13, 16, 18},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
            {"updates", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", 0},
            {"reduction", "none", {.since = 16}},
        },
    .types =
        {
            {"T", {{11, kAll}, {13, kBf16}}},
            {"Tind", {{11, kIndices}}},
        },
    .infer = infer_scatter_elements,
    .reference = run_scatter_elements,
    .down = {{18, 16, step_no_extremum}, {11, 0, step_scatter}},
};

}  // namespace tombolo::ops
