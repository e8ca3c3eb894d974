#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_gather_elements(InferContext& context) {
  const SymShape* data = context.shape(0);
  const SymShape* indices = context.shape(1);
  if (data != nullptr && indices != nullptr && data->size() != indices->size())
    return context.error("data of shape " + shape_to_string(*data) + " and indices of shape " +
                         shape_to_string(*indices) + " must have one rank");
  if (indices != nullptr)
    set_shape(context, 0, *indices);
  else if (data != nullptr)
    set_rank(context, 0, data->size());
  return ok();
}
}  // namespace

OPERATOR(GatherElements) = {
    .name = "GatherElements",
    .doc = "elements picked along an axis, one index an element",
    .versions = {11, 13},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 0}},
    .types =
        {
            {"T", {{11, kAll}, {13, kBf16}}},
            {"Tind", {{11, kIndices}}},
        },
    .infer = infer_gather_elements,
};

}  // namespace tombolo::ops
