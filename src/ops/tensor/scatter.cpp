#include "ops/kernels/scatter.h"
#include "ops/infer_generic.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {

Status run_scatter(KernelContext& context) { return scatter_elements(context); }

}  // namespace

namespace {

Status step_scatter_elements(StepContext& step) {
  step.node.set_op_type("ScatterElements");
  return ok();
}

}  // namespace

OPERATOR(Scatter) = {
    .name = "Scatter",
    .doc = "old name of ScatterElements",
    .versions = {9, 11},
    .deprecated = {11},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
            {"updates", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 0}},
    .types =
        {
            {"T", {{9, kAll}}},
            {"Tind", {{9, kIndices}}},
        },
    .infer = infer_unary,
    .reference = run_scatter,
    .up = {{9, 11, step_scatter_elements}},
};

}  // namespace tombolo::ops
