#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_size(InferContext& context) {
  set_shape(context, 0, {});
  if (const SymShape* data = context.shape(0)) {
    const SymDim count = product_of(*data);
    if (!count.is_unknown()) context.set_value(0, {count});
  }
  return ok();
}
Status run_size(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(Tensor * out, context.output(0, DType::kInt64, {}));
  *out->data<int64_t>() = data->size();
  return ok();
}

}  // namespace

OPERATOR(Size) = {
    .name = "Size",
    .doc = "the number of elements as int64",
    .versions = {1, 13, 19, 21, 23, 24, 25},
    .inputs = {{"data", "T"}},
    .outputs = {{"size", "T1"}},
    .types =
        {
            {"T",
             {{1, kAll},
              {13, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
            {"T1", {{1, kI64}}},
        },
    .infer = infer_size,
    .reference = run_size,
};

}  // namespace tombolo::ops
