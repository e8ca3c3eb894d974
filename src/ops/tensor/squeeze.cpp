#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_squeeze(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (const SymShape* elements = context.ints(0); elements != nullptr && elements->size() == 1)
    context.set_value(0, *elements);
  else if (elements != nullptr)
    context.set_value(0, *elements);  // rank 1: only an axis of length 1 can go
  if (data == nullptr) return ok();
  const bool given =
      context.opset >= 13 ? context.has_input(1) : !context.attributes.get_ints("axes").empty();
  SymShape out;
  if (!given) {
    for (const SymDim& dim : *data) {
      // Whether an unknown axis goes away is not known, hence neither is the rank.
      if (!dim.is_value() && !dim.differs(SymDim(1))) return ok();
      if (dim.constant() != 1) out.push_back(dim);
    }
    set_shape(context, 0, std::move(out));
    return ok();
  }
  const auto axes = ints_from(context, "axes", 1);
  if (!axes) {
    const SymShape* count = context.shape(1);
    if (count != nullptr && count->size() == 1 && (*count)[0].is_value() &&
        (*count)[0].value() <= static_cast<int64_t>(data->size()))
      set_rank(context, 0, data->size() - static_cast<size_t>((*count)[0].value()));
    return ok();
  }
  TRY(const std::vector<size_t> indices, checked_axes(context, *axes, data->size()));
  std::vector<bool> removed(data->size());
  for (const size_t axis : indices) {
    removed[axis] = true;
    if ((*data)[axis].is_value() && (*data)[axis].value() != 1)
      return context.error("axis " + std::to_string(axis) + " of data of shape " +
                           shape_to_string(*data) + " is not 1 and cannot be squeezed");
  }
  for (size_t i = 0; i < data->size(); ++i)
    if (!removed[i]) out.push_back((*data)[i]);
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_squeeze(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const auto given, optional_ints(context, 1, "axes"));
  std::vector<int64_t> axes;
  if (given) {
    TRY(axes, normalize_axes(*given, static_cast<int64_t>(data->rank())));
  }
  Dims dims;
  for (size_t j = 0; j < data->rank(); ++j) {
    const bool named = std::find(axes.begin(), axes.end(), j) != axes.end();
    if (named && data->dim(j) != 1)
      return context.error("axis " + std::to_string(j) + " of " + to_string(*data) +
                           " is not of length 1");
    if (!(given ? named : data->dim(j) == 1)) dims.push_back(data->dim(j));
  }
  context.set_output(0, data->reshaped(dims));
  return ok();
}

}  // namespace

OPERATOR(Squeeze) = {
    .name = "Squeeze",
    .doc = "removes axes of length 1",
    .versions = {1, 11, 13, 21, 23, 24, 25},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 13}},
        },
    .outputs = {{"squeezed", "T"}},
    .attributes = {{"axes", Attr::kInts, {.until = 12}}},
    .types = {{"T",
               {{1, kAll}, {13, kBf16}, {21, kFp8 | kInt4}, {23, kFp4}, {24, kE8m0}, {25, kInt2}}}},
    .infer = infer_squeeze,
    .reference = run_squeeze,
    .up = {{11, 13, step_axes_to_input}},
    .down = {{13, 11, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

}  // namespace tombolo::ops
