#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_expand(InferContext& context) {
  const SymShape* data = context.shape(0);
  const auto target = elements_or_unknown(context, 1);
  if (!target) return ok();
  if (data == nullptr) return ok();
  TRY(SymShape out, broadcast(*data, *target));
  const SymShape* elements = context.ints(0);
  if (elements != nullptr && elements->size() == 1 && out.size() == 1 && out[0].is_value() &&
      out[0].value() >= 0 && out[0].value() <= kMaxElements)
    context.set_value(0, SymShape(static_cast<size_t>(out[0].value()), SymDim((*elements)[0])));
  else if (elements != nullptr && out.size() <= 1 && out.size() == data->size() &&
           (out.empty() || out[0].equals((*data)[0])))
    context.set_value(0, *elements);
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_expand(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const std::vector<int64_t> shape, context.input_ints(1));
  for (const int64_t dim : shape)
    if (dim < 0) return context.error("shape " + dims_to_string(shape) + " has a negative dim");
  TRY(const Dims dims, broadcast_dims(data->dims(), shape));
  TRY(Tensor * out, context.output(0, data->dtype(), dims));
  const Dims strides = contiguous_strides(data->dims());
  Dims from;
  from.resize(dims.size(), 0);
  const size_t lead = dims.size() - data->rank();
  for (size_t j = 0; j < data->rank(); ++j) from[lead + j] = data->dim(j) == 1 ? 0 : strides[j];
  copy_box(*data, 0, from, *out, 0, contiguous_strides(dims), dims);
  return ok();
}

}  // namespace

OPERATOR(Expand) = {
    .name = "Expand",
    .doc = "broadcasts to a shape",
    .versions = {8, 13},
    .inputs =
        {
            {"input", "T"},
            {"shape", "tensor(int64)"},
        },
    .outputs = {{"output", "T"}},
    .types = {{"T", {{8, kAll}, {13, kBf16}}}},
    .infer = infer_expand,
    .reference = run_expand,
};

}  // namespace tombolo::ops
