#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_det(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  if (x->size() < 2)
    return context.error("X must hold matrices, but its shape is " + shape_to_string(*x));
  CHECK_OK(unify_dims(context, (*x)[x->size() - 2], x->back(), "rows against columns"));
  set_shape(context, 0, SymShape(x->begin(), x->end() - 2));
  return ok();
}
}  // namespace

OPERATOR(Det) = {
    .name = "Det",
    .doc = "determinant of the matrices in the last two axes",
    .versions = {11, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{11, kFloats}, {22, kBf16}}}},
    .infer = infer_det,
};

}  // namespace tombolo::ops
