#include <algorithm>
#include <numeric>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/slice_range.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_slice(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  const size_t rank = data->size();
  const bool by_input = context.opset >= 10;
  const auto list = [&](Text name, size_t index) -> std::optional<SymShape> {
    if (by_input) {
      const SymShape* known = context.ints(index);
      return known != nullptr ? std::optional(*known) : std::nullopt;
    }
    SymShape out;
    for (const int64_t value : context.attributes.get_ints(name)) out.push_back(value);
    return out;
  };
  const auto starts = list("starts", 1), ends = list("ends", 2);
  const size_t count = starts ? starts->size() : ends ? ends->size() : 0;
  if (starts && ends && starts->size() != ends->size())
    return context.error("starts holds " + std::to_string(starts->size()) + " numbers, ends " +
                         std::to_string(ends->size()));

  std::optional<std::vector<int64_t>> axes = ints_from(context, "axes", 3);
  const bool axes_given =
      context.has_input(3) || (!by_input && !context.attributes.get_ints("axes").empty());
  if (axes && !axes_given) {
    axes->clear();
    // Without axes they are the first ones; how many, the length of starts says.
    size_t length = count;
    if (!starts && !ends) {
      const SymShape* shape = context.shape(1);
      length = shape != nullptr && shape->size() == 1 && (*shape)[0].is_value()
                   ? static_cast<size_t>(
                         std::min<int64_t>((*shape)[0].value(), static_cast<int64_t>(rank)))
                   : rank;
    }
    for (size_t i = 0; i < length; ++i) axes->push_back(static_cast<int64_t>(i));
  }
  if (!axes) {
    set_rank(context, 0, rank);
    return ok();
  }
  TRY(const std::vector<size_t> indices, checked_axes(context, *axes, rank));
  if ((starts && indices.size() != starts->size()) || (ends && indices.size() != ends->size()))
    return context.error("axes holds " + std::to_string(indices.size()) +
                         " numbers, starts and ends " + std::to_string(count));
  const bool has_steps = by_input && context.has_input(4);
  const auto steps = has_steps ? context.constant_ints(4) : std::nullopt;
  if (steps && steps->size() != indices.size())
    return context.error("steps holds " + std::to_string(steps->size()) + " numbers for " +
                         std::to_string(indices.size()) + " axes");
  SymShape out = *data;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t step = steps ? (*steps)[i] : 1;
    if (steps && step == 0) return context.error("a step is 0");
    SymDim& dim = out[indices[i]];
    dim = starts && ends && (!has_steps || steps)
              ? slice_length(dim, (*starts)[i], (*ends)[i], step)
              : SymDim();
  }
  // A slice of a shape.
  const SymShape* elements = context.ints(0);
  if (elements != nullptr && rank == 1 && indices.size() == 1 && starts && ends &&
      (*starts)[0].is_value() && (*ends)[0].is_value() && (!has_steps || steps)) {
    const auto size = static_cast<int64_t>(elements->size());
    const int64_t step = steps ? (*steps)[0] : 1;
    const auto [start, length] = slice_range((*starts)[0].value(), (*ends)[0].value(), step, size);
    SymShape picked;
    for (int64_t k = 0; k < length; ++k)
      picked.push_back((*elements)[static_cast<size_t>(start + k * step)]);
    context.set_value(0, std::move(picked));
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_slice(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const std::vector<int64_t> starts, required_ints(context, 1, "starts"));
  TRY(const std::vector<int64_t> ends, required_ints(context, 2, "ends"));
  TRY(const auto given_axes, optional_ints(context, 3, "axes"));
  TRY(const auto given_steps, optional_ints(context, 4, "steps"));
  std::vector<int64_t> axes(starts.size());
  for (size_t k = 0; k < axes.size(); ++k) axes[k] = static_cast<int64_t>(k);
  TRY(axes, normalize_axes(given_axes ? *given_axes : axes, static_cast<int64_t>(data->rank())));
  const std::vector<int64_t> steps =
      given_steps ? *given_steps : std::vector<int64_t>(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return context.error("starts, ends, axes and steps must be of one length, have " +
                         std::to_string(starts.size()) + ", " + std::to_string(ends.size()) + ", " +
                         std::to_string(axes.size()) + ", " + std::to_string(steps.size()) +
                         " elements");

  Dims dims = data->dims();
  Dims from = contiguous_strides(dims);
  int64_t offset = 0;
  for (size_t k = 0; k < starts.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const int64_t length = data->dim(axis), step = steps[k];
    if (step == 0) return context.error("a step of 0 along axis " + std::to_string(axis));
    const auto [start, count] = slice_range(starts[k], ends[k], step, length);
    dims[axis] = count;
    if (count > 0) offset += start * from[axis];
    if (count > 1) from[axis] *= step;
  }
  TRY(Tensor * out, context.output(0, data->dtype(), dims));
  copy_box(*data, offset, from, *out, 0, contiguous_strides(dims), dims);
  return ok();
}

}  // namespace

namespace {

Status step_bounds_to_inputs(StepContext& step) {
  const std::optional<std::vector<int64_t>> starts = step.get_ints("starts");
  if (!starts || !step.get_ints("ends")) return step.cannot("starts or ends is missing");
  if (const auto given = step.get_ints("axes");
      !given || given->empty()) {  // the first axes then; the newer versions say: all axes
    std::vector<int64_t> axes(starts->size());
    std::iota(axes.begin(), axes.end(), 0);
    step.node.set_ints("axes", axes);
  }
  step.ints_to_input("starts", 1);
  step.ints_to_input("ends", 2);
  step.ints_to_input("axes", 3);
  return ok();
}

}  // namespace

namespace {

Status step_positive_axes(StepContext& step) {
  if (!step.has_input(3)) return ok();
  const auto axes = step.constant_ints(3);
  const std::optional<size_t> rank = step.rank(0);
  if (!axes) return step.cannot("the axes may be negative, which they might not be there");
  std::vector<int64_t> list;
  for (const int64_t axis : *axes) {
    if (axis < 0 && !rank) return step.cannot("the rank of the input is not known");
    list.push_back(axis < 0 ? axis + static_cast<int64_t>(*rank) : axis);
  }
  if (list != *axes) step.node.set_input(3, step.ints(list, "axes"));
  return ok();
}

Status step_bounds_to_attributes(StepContext& step) {
  if (const auto steps = step.constant_ints(4); step.has_input(4)) {
    if (!steps) return step.cannot("it had no steps");
    for (const int64_t one : *steps)
      if (one != 1) return step.cannot("it had no steps");
  }
  for (const uint32_t i : {1u, 2u, 3u})
    if (step.has_input(i) && !step.constant_ints(i))
      return step.cannot("the bounds must be constant there");
  CHECK_OK(step.ints_to_attribute(1, "starts"));
  CHECK_OK(step.ints_to_attribute(2, "ends"));
  CHECK_OK(step.ints_to_attribute(3, "axes"));
  while (step.node.inputs().size() > 1)
    step.node.remove_input(static_cast<uint32_t>(step.node.inputs().size() - 1));
  return ok();
}

}  // namespace

OPERATOR(Slice) = {
    .name = "Slice",
    .doc = "elements start to end by step along chosen axes",
    .versions = {1, 10, 11, 13},
    .inputs =
        {
            {"data", "T"},
            {"starts", "Tind", kSingle, {.since = 10}},
            {"ends", "Tind", kSingle, {.since = 10}},
            {"axes", "Tind", kOptional, {.since = 10}},
            {"steps", "Tind", kOptional, {.since = 10}},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 9}},
            {"ends", required(Attr::kInts), {.until = 9}},
            {"starts", required(Attr::kInts), {.until = 9}},
        },
    .types =
        {
            {"T", {{1, kAll}, {13, kBf16}}},
            {"Tind", {{10, kIndices}}, {.since = 10}},
        },
    .infer = infer_slice,
    .reference = run_slice,
    .up = {{1, 10, step_bounds_to_inputs}},
    .down = {{11, 10, step_positive_axes}, {10, 1, step_bounds_to_attributes}},
};

}  // namespace tombolo::ops
