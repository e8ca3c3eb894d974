#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_array_feature_extractor(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  if (x->rank() == 0 || !is_integer(indices->dtype()))
    return context.error("X must have an axis and Y be of integers, are " + to_string(*x) +
                         " and " + to_string(*indices));
  const int64_t features = x->dim(x->rank() - 1);
  Dims dims = x->dims();
  dims.back() = indices->size();
  if (dims.size() == 1) dims.insert(0, 1);  // a vector gives a matrix of one row
  for (int64_t i = 0; i < indices->size(); ++i)
    if (indices->get_int64(i) < 0 || indices->get_int64(i) >= features)
      return context.error("Y has the index " + std::to_string(indices->get_int64(i)) +
                           ", the last axis of X has " + std::to_string(features));
  TRY(Tensor * y, context.output(0, x->dtype(), dims));
  for (int64_t i = 0; i < y->size(); ++i)
    copy_elements(*x, i / indices->size() * features + indices->get_int64(i % indices->size()), *y,
                  i, 1);
  return ok();
}

}  // namespace

namespace {
Status infer_array_feature_extractor(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* y = context.shape(1);
  if (x == nullptr || y == nullptr || x->empty()) return ok();
  SymShape out(x->begin(), x->end() - 1);
  if (x->size() == 1) out.push_back(1);
  out.push_back(product_of(*y));
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(ArrayFeatureExtractor) = {
    .name = "ArrayFeatureExtractor",
    .domain = "ai.onnx.ml",
    .doc = "columns of the last axis picked by index",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"Y", "tensor(int64)"},
        },
    .outputs = {{"Z", "T"}},
    .types = {{"T", {{1, kFloats32 | kIndices | kStr}}}},
    .infer = infer_array_feature_extractor,
    .reference = run_array_feature_extractor,
};

}  // namespace tombolo::ops
