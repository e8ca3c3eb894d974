#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/schema.h"
#include "ops/step_context.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_unsqueeze(InferContext& context) {
  const SymShape* data = context.shape(0);
  const auto axes = ints_from(context, "axes", 1);
  if (data == nullptr) return ok();
  if (!axes) {
    const SymShape* count = context.shape(1);
    if (count != nullptr && count->size() == 1 && (*count)[0].is_value() &&
        (*count)[0].value() < 64)
      set_rank(context, 0, data->size() + static_cast<size_t>((*count)[0].value()));
    return ok();
  }
  const size_t rank = data->size() + axes->size();
  TRY(const std::vector<size_t> indices, checked_axes(context, *axes, rank));
  std::vector<bool> added(rank);
  for (const size_t axis : indices) added[axis] = true;
  SymShape out;
  size_t from = 0;
  for (size_t i = 0; i < rank; ++i) out.push_back(added[i] ? SymDim(1) : (*data)[from++]);
  if (const SymShape* elements = context.ints(0); elements != nullptr && rank <= 1)
    context.set_value(0, *elements);
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_unsqueeze(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const std::vector<int64_t> given, required_ints(context, 1, "axes"));
  const size_t rank = data->rank() + given.size();
  TRY(const std::vector<int64_t> axes, normalize_axes(given, static_cast<int64_t>(rank)));
  Dims dims;
  size_t next = 0;
  for (size_t j = 0; j < rank; ++j)
    dims.push_back(std::find(axes.begin(), axes.end(), j) != axes.end() ? 1 : data->dim(next++));
  context.set_output(0, data->reshaped(dims));
  return ok();
}

}  // namespace

namespace {

/// Unlike elsewhere an empty list means that no axis is added.
Status step_list_to_input(StepContext& step) {
  if (!step.get_ints("axes")) return step.cannot("there are no axes");
  step.ints_to_input("axes", 1);
  return ok();
}

}  // namespace

namespace {

/// Axes count in the rank of the output.
Status step_output_axes_from_front(StepContext& step) {
  const auto axes = step.get_ints("axes");
  if (!axes) return ok();
  const std::optional<size_t> rank = step.rank(0);
  std::vector<int64_t> list = *axes;
  for (int64_t& axis : list) {
    if (axis >= 0) continue;
    if (!rank) return step.cannot("a negative axis needs the rank of the input, which is unknown");
    axis += static_cast<int64_t>(*rank + list.size());
  }
  step.node.set_ints("axes", list);
  return ok();
}

}  // namespace

OPERATOR(Unsqueeze) = {
    .name = "Unsqueeze",
    .doc = "inserts axes of length 1",
    .versions = {1, 11, 13, 21, 23, 24, 25},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kSingle, {.since = 13}},
        },
    .outputs = {{"expanded", "T"}},
    .attributes = {{"axes", required(Attr::kInts), {.until = 12}}},
    .types = {{"T",
               {{1, kAll}, {13, kBf16}, {21, kFp8 | kInt4}, {23, kFp4}, {24, kE8m0}, {25, kInt2}}}},
    .infer = infer_unsqueeze,
    .reference = run_unsqueeze,
    .up = {{11, 13, step_list_to_input}},
    .down = {{13, 11, step_axes_to_attribute}, {11, 1, step_output_axes_from_front}},
};

}  // namespace tombolo::ops
