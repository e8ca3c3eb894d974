#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_nonzero(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) {
    set_rank(context, 0, 2);
    return ok();
  }
  // How many are not 0 follows where every element is known to be 0 or not.
  SymDim count;
  if (const SymShape* elements = context.ints(0); elements != nullptr && x->size() == 1) {
    count = 0;
    for (const SymDim& element : *elements) {
      const SymDim zero = element.equals(SymDim(0))    ? SymDim(1)
                          : element.differs(SymDim(0)) ? SymDim(0)
                                                       : SymDim();
      count = count + (SymDim(1) - zero);
    }
  }
  if (count.is_unknown()) count = context.host.fresh_symbol("nonzero");
  set_shape(context, 0, {SymDim(static_cast<int64_t>(x->size())), count});
  return ok();
}
}  // namespace

OPERATOR(NonZero) = {
    .name = "NonZero",
    .doc = "coordinates of the elements that are not zero, in row-major order",
    .versions = {9, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(int64)"}},
    .types = {{"T", {{9, kAll}, {13, kBf16}}}},
    .infer = infer_nonzero,
};

}  // namespace tombolo::ops
