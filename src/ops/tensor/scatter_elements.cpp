#include "ops/infer_helpers.h"
#include "ops/kernels/scatter.h"
#include "ops/schema.h"

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
};

}  // namespace tombolo::ops
