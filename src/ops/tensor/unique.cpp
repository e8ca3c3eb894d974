#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_unique(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymDim count = context.host.fresh_symbol("unique");
  const auto axis = context.attributes.get_int("axis");
  SymDim all = x != nullptr ? product_of(*x) : SymDim();
  if (!axis) {
    set_shape(context, 0, {count});
  } else if (x != nullptr) {
    TRY(const size_t index, checked_axis(context, *axis, x->size()));
    SymShape out = *x;
    all = out[index];
    out[index] = count;
    set_shape(context, 0, std::move(out));
  }
  context.set_tensor(1, DType::kInt64, {count});
  context.set_tensor(2, DType::kInt64, {all});
  context.set_tensor(3, DType::kInt64, {count});
  return ok();
}
}  // namespace

OPERATOR(Unique) = {
    .name = "Unique",
    .doc = "distinct elements or slices, with first places, inverse and counts",
    .versions = {11, 28},
    .inputs = {{"X", "T"}},
    .outputs =
        {
            {"Y", "T"},
            {"indices", "tensor(int64)", kOptional},
            {"inverse_indices", "tensor(int64)", kOptional},
            {"counts", "tensor(int64)", kOptional},
        },
    .attributes =
        {
            {"axis", Attr::kInt},
            {"sorted", 1},
        },
    .types = {{"T", {{11, kAll}, {28, kBf16}}}},
    .infer = infer_unique,
};

}  // namespace tombolo::ops
