#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_one_hot(InferContext& context) {
  const SymShape* indices = context.shape(0);
  InferType type = InferType::tensor(context.elem(2));
  SymDim depth;
  if (const auto given = scalar_of(context, 1)) {
    depth = *given;
  } else if (const Tensor* tensor = context.constant(1); tensor != nullptr && tensor->size() == 1) {
    depth = static_cast<int64_t>(tensor->get_double(0));
  }
  if (indices != nullptr) {
    const size_t rank = indices->size() + 1;
    TRY(const size_t axis, checked_axis(context, context.attributes.get_int("axis", -1), rank));
    SymShape out = *indices;
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), depth);
    type.shape = std::move(out);
  }
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

OPERATOR(OneHot) = {
    .name = "OneHot",
    .doc = "a new axis with on at the index and off elsewhere",
    .versions = {9, 11, 28},
    .inputs =
        {
            {"indices", "T1"},
            {"depth", "T2"},
            {"values", "T3"},
        },
    .outputs = {{"output", "T3"}},
    .attributes = {{"axis", -1}},
    .types =
        {
            {"T1", {{9, kNumbers}}},
            {"T2", {{9, kNumbers}}},
            {"T3", {{9, kAll}, {28, kBf16}}},
        },
    .infer = infer_one_hot,
};

}  // namespace tombolo::ops
