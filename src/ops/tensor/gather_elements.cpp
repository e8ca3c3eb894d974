#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
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
Status run_gather_elements(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  CHECK_OK(check_index_type(*indices));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(data->rank())));
  const auto at = static_cast<size_t>(axis);
  bool fits = indices->rank() == data->rank();
  for (size_t j = 0; fits && j < data->rank(); ++j)
    fits = j == at || indices->dim(j) <= data->dim(j);
  if (!fits)
    return context.error("indices " + to_string(*indices) + " do not fit data " + to_string(*data));
  TRY(Tensor * out, context.output(0, data->dtype(), indices->dims()));
  if (out->size() == 0) return ok();
  const Dims strides = contiguous_strides(data->dims());
  Odometer walk(indices->dims());
  int64_t to = 0;
  do {
    TRY(const int64_t place, checked_index(indices->get_int64(to), data->dim(at), axis));
    const int64_t from = walk.dot(strides) + (place - walk.index[at]) * strides[at];
    copy_elements(*data, from, *out, to++, 1);
  } while (walk.next());
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
    .reference = run_gather_elements,
};

}  // namespace tombolo::ops
