#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"
#include "ops/step_context.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_split(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  const size_t outputs = context.outputs.size();
  if (outputs == 0) return ok();
  TRY(const size_t axis,
      checked_axis(context, context.attributes.get_int("axis", 0), data->size()));
  const SymDim& size = (*data)[axis];
  SymShape parts(outputs);
  const bool by_input = context.opset >= 13 || (context.opset < 2 && context.has_input(1));
  const bool given =
      by_input ? context.has_input(1) : !context.attributes.get_ints("split").empty();
  if (given) {
    std::optional<SymShape> lengths;
    if (by_input) {
      if (const SymShape* known = context.ints(1)) lengths = *known;
    } else {
      SymShape list;
      for (const int64_t length : context.attributes.get_ints("split")) list.push_back(length);
      lengths = std::move(list);
    }
    if (lengths) {
      if (lengths->size() != outputs)
        return context.error("split holds " + std::to_string(lengths->size()) + " lengths for " +
                             std::to_string(outputs) + " outputs");
      SymDim total = 0;
      for (const SymDim& length : *lengths) {
        if (length.is_value() && length.value() < 0)
          return context.error("split holds a negative length");
        total = total + length;
      }
      if (total.is_value() && size.is_value() && total.value() != size.value())
        return context.error("the lengths in split add up to " + total.to_string() + ", but axis " +
                             std::to_string(axis) + " has " + size.to_string());
      parts = *lengths;
    }
  } else {
    const auto count = static_cast<int64_t>(outputs);
    if (context.opset >= 18) {
      const int64_t declared = context.attributes.get_int("num_outputs", count);
      if (declared != count)
        return context.error("num_outputs is " + std::to_string(declared) + ", but the node has " +
                             std::to_string(count) + " outputs");
      // Equal parts; the last may be smaller.
      const SymDim part = ceil_div(size, SymDim(count));
      for (size_t i = 0; i + 1 < outputs; ++i) parts[i] = part;
      parts[outputs - 1] = size - part * (count - 1);
      if (parts[outputs - 1].is_value() && parts[outputs - 1].value() < 0)
        return context.error("an axis of " + size.to_string() + " does not split into " +
                             std::to_string(count) + " parts");
    } else {
      if (size.is_value() && size.value() % count != 0)
        return context.error("an axis of " + size.to_string() + " does not split into " +
                             std::to_string(count) + " equal parts");
      for (SymDim& part : parts) part = floor_div(size, SymDim(count));
    }
  }
  const SymShape* elements = context.ints(0);
  size_t at = 0;
  for (size_t i = 0; i < outputs; ++i) {
    SymShape out = *data;
    out[axis] = parts[i];
    if (elements != nullptr && data->size() == 1 && parts[i].is_value() && parts[i].value() >= 0 &&
        at + static_cast<size_t>(parts[i].value()) <= elements->size()) {
      const auto begin = elements->begin() + static_cast<std::ptrdiff_t>(at);
      context.set_value(i, SymShape(begin, begin + parts[i].value()));
      at += static_cast<size_t>(parts[i].value());
    } else {
      elements = nullptr;
    }
    set_shape(context, i, std::move(out));
  }
  return ok();
}
/// The lengths of the parts along an axis of `length`.
Result<std::vector<int64_t>> part_lengths(const KernelContext& context, int64_t length) {
  TRY(const auto given, optional_ints(context, 1, "split"));
  const auto outputs = static_cast<int64_t>(context.output_count());
  if (given) {
    if (static_cast<int64_t>(given->size()) != outputs)
      return context.error("split names " + std::to_string(given->size()) + " parts for " +
                           std::to_string(outputs) + " outputs");
    int64_t sum = 0;
    for (const int64_t part : *given) {
      if (part < 0 || part > length - sum)
        return context.error("split " + dims_to_string(*given) +
                             " does not add up to the length of the axis, " +
                             std::to_string(length));
      sum += part;
    }
    if (sum != length)
      return context.error("split " + dims_to_string(*given) +
                           " does not add up to the length of the axis, " + std::to_string(length));
    return *given;
  }
  const int64_t parts = context.attributes.get_int("num_outputs", outputs);
  if (parts != outputs)
    return context.error("num_outputs is " + std::to_string(parts) + ", but the node has " +
                         std::to_string(outputs) + " outputs");
  if (context.opset < 18 && length % parts != 0)
    return context.error("an axis of length " + std::to_string(length) + " does not split into " +
                         std::to_string(parts) + " equal parts");
  const int64_t chunk = length / parts + (length % parts != 0);
  std::vector<int64_t> lengths;
  for (int64_t k = 0, left = length; k < parts; ++k) {
    lengths.push_back(std::min(chunk, left));
    left -= lengths.back();
  }
  return lengths;
}

Status run_split(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(data->rank())));
  const auto at = static_cast<size_t>(axis);
  if (context.output_count() == 0) return context.error("the node has no outputs");
  TRY(const std::vector<int64_t> lengths, part_lengths(context, data->dim(at)));
  Dims dims = data->dims();
  int64_t offset = 0;
  for (size_t k = 0; k < lengths.size(); ++k) {
    dims[at] = lengths[k];
    TRY(Tensor * out, context.output(k, data->dtype(), dims));
    const int64_t outer = product(dims, 0, at), inner = product(dims, at + 1, dims.size());
    const int64_t run = lengths[k] * inner;
    const int64_t box[] = {outer, run};
    const int64_t from[] = {data->dim(at) * inner, 1}, to[] = {run, 1};
    copy_box(*data, offset, from, *out, 0, to, box);
    offset += run;
  }
  return ok();
}

}  // namespace

namespace {

Status step_sizes_to_attribute(StepContext& step) {
  if (!step.has_input(1)) return ok();
  const std::optional<std::vector<int64_t>> sizes = step.constant_ints(1);
  if (!sizes) return step.cannot("the sizes are not constant");
  step.node.set_ints("split", *sizes);
  step.node.remove_input(1);
  return ok();
}

Status step_sizes_to_input(StepContext& step) {
  if (const auto sizes = step.get_ints("split"); sizes && sizes->empty())
    step.node.remove_attribute("split");
  step.ints_to_input("split", 1);
  return ok();
}

/// Without sizes the number of parts is said now; parts stay equal.
Status step_count_outputs(StepContext& step) {
  if (!step.has_input(1))
    step.node.set_int("num_outputs", static_cast<int64_t>(step.node.outputs().size()));
  return ok();
}

}  // namespace

namespace {

/// Without sizes the parts were equal, and counted by the outputs.
Status step_count_by_outputs(StepContext& step) {
  Node& node = step.node;
  const auto parts = static_cast<int64_t>(node.outputs().size());
  node.remove_attribute("num_outputs");
  if (step.has_input(1) || parts == 0) return ok();
  const std::optional<size_t> rank = step.rank(0);
  int64_t axis = step.get_int("axis", 0);
  if (axis < 0 && rank) axis += static_cast<int64_t>(*rank);
  const auto length = axis < 0 ? std::nullopt : step.dim(0, static_cast<size_t>(axis));
  if (length) {
    if (*length % parts == 0) return ok();
    const int64_t chunk = *length / parts + 1;
    std::vector<int64_t> sizes(static_cast<size_t>(parts));
    for (int64_t k = 0, left = *length; k < parts; ++k, left -= std::min(chunk, left))
      sizes[static_cast<size_t>(k)] = std::min(chunk, left);
    node.set_input(1, step.ints(sizes, "sizes"));
    return ok();
  }
  // ceil(length / parts) each, the rest in the last ones.
  Node& shape = step.before("Shape", {node.input(0)}, "shape");
  Node& count = step.before(
      "Gather", {shape.output(0), step.ints({step.get_int("axis", 0)}, "axis")}, "length");
  Node& more = step.before("Add", {count.output(0), step.ints({parts - 1}, "more")}, "rounded");
  Node& chunk = step.before("Div", {more.output(0), step.ints({parts}, "parts")}, "chunk");
  std::vector<int64_t> steps(static_cast<size_t>(parts));
  for (int64_t k = 0; k < parts; ++k) steps[static_cast<size_t>(k)] = k;
  Node& starts = step.before("Mul", {chunk.output(0), step.ints(steps, "places")}, "starts");
  Node& left = step.before("Sub", {count.output(0), starts.output(0)}, "left");
  Node& positive = step.before("Max", {left.output(0), step.ints({0}, "zero")}, "left");
  Node& sizes = step.before("Min", {positive.output(0), chunk.output(0)}, "sizes");
  node.set_input(1, sizes.output(0));
  return ok();
}

Status step_sizes_back_to_attribute(StepContext& step) {
  CHECK_OK(step.ints_to_attribute(1, "split"));
  return ok();
}

}  // namespace

OPERATOR(Split) = {
    .name = "Split",
    .doc = "cuts a tensor into parts along an axis",
    .versions = {1, 2, 11, 13, 18},
    .inputs =
        {
            {"input", "T"},
            {"split", "T", kOptional, {.until = 1}},
            {"split", "tensor(int64)", kOptional, {.since = 13}},
        },
    .outputs =
        {
            {"outputs...", "T", kVariadic, {.until = 1}},
            {"outputs", "T", kVariadic, {.since = 2}},
        },
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 1}},
            {"axis", 0, {.since = 2}},
            {"split", Attr::kInts, {.until = 12}},
            {"num_outputs", Attr::kInt, {.since = 18}},
        },
    .types = {{"T", {{1, kFloats}, {2, kInts | kComplex | kStr | kBool}, {13, kBf16}}}},
    .infer = infer_split,
    .reference = run_split,
    .up = {{1, 2, step_sizes_to_attribute},
           {11, 13, step_sizes_to_input},
           {13, 18, step_count_outputs}},
    .down = {{18, 13, step_count_by_outputs},
             {13, 11, step_sizes_back_to_attribute},
             {11, 2, step_axis_from_front}},
};

}  // namespace tombolo::ops
