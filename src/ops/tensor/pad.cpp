#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/pad.h"
#include "ops/schema.h"
#include "ops/step_context.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_pad(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  std::optional<SymShape> pads;
  if (context.opset >= 11) {
    if (const SymShape* known = context.ints(1)) pads = *known;
  } else {
    SymShape list;
    for (const int64_t pad : context.attributes.get_ints(context.opset < 2 ? "paddings" : "pads"))
      list.push_back(pad);
    pads = std::move(list);
  }
  std::vector<size_t> axes(data->size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  if (context.opset >= 18 && context.has_input(3)) {
    const auto given = context.constant_ints(3);
    if (!given) {
      set_rank(context, 0, data->size());
      return ok();
    }
    TRY(axes, checked_axes(context, *given, data->size()));
  }
  SymShape out = *data;
  if (!pads) {
    for (const size_t axis : axes) out[axis] = SymDim();
    set_shape(context, 0, std::move(out));
    return ok();
  }
  if (pads->size() != 2 * axes.size())
    return context.error("pads holds " + std::to_string(pads->size()) + " numbers, but " +
                         std::to_string(axes.size()) + " axes need " +
                         std::to_string(2 * axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    SymDim& dim = out[axes[i]];
    dim = dim + (*pads)[i] + (*pads)[i + axes.size()];
    if (dim.is_value() && dim.value() < 0)
      return context.error("pads remove more than axis " + std::to_string(axes[i]) +
                           " of data of shape " + shape_to_string(*data) + " has");
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_pad(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  const char* name = context.opset < 2 ? "paddings" : "pads";
  TRY(const std::vector<int64_t> pads, required_ints(context, 1, name));
  const size_t rank = data->rank();
  std::vector<int64_t> axes(rank), before(rank, 0), after(rank, 0);
  for (size_t j = 0; j < rank; ++j) axes[j] = static_cast<int64_t>(j);
  if (context.has_input(3)) {
    TRY(axes, context.input_ints(3));
    TRY(axes, normalize_axes(axes, static_cast<int64_t>(rank)));
  }
  if (pads.size() != 2 * axes.size())
    return context.error(std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) +
                         " axes");
  for (size_t k = 0; k < axes.size(); ++k) {
    before[static_cast<size_t>(axes[k])] = pads[k];
    after[static_cast<size_t>(axes[k])] = pads[k + axes.size()];
  }
  constexpr std::string_view kModes[] = {"constant", "reflect", "edge", "wrap"};
  const Text mode = context.attributes.get_string("mode", "constant");
  const auto* found = std::find(std::begin(kModes), std::end(kModes), mode);
  if (found == std::end(kModes))
    return context.error("mode must be constant, reflect, edge or wrap, is \"" + std::string(mode) +
                         "\"");

  TRY(const Tensor* value, context.optional_input(2));
  Tensor from_attribute;
  if (value == nullptr && context.attributes.has("value")) {
    TRY(from_attribute, context.allocate(data->dtype(), {}));
    from_attribute.set_double(0, context.attributes.get_float("value", 0));
    value = &from_attribute;
  }
  if (value != nullptr && (value->size() != 1 || value->dtype() != data->dtype()))
    return context.error("constant_value must be one element of the type of " + to_string(*data) +
                         ", is " + to_string(*value));
  TRY(Tensor out, pad_tensor(context, *data, before, after,
                             static_cast<PadMode>(found - std::begin(kModes)), value));
  context.set_output(0, std::move(out));
  return ok();
}

}  // namespace

namespace {

Status step_rename_paddings(StepContext& step) {
  step.rename_attribute("paddings", "pads");
  return ok();
}

Status step_pads_to_input(StepContext& step) {
  if (!step.get_ints("pads")) return step.cannot("there are no pads");
  const float value = step.get_float("value", 0.0f);
  if (value != 0 && step.get_string("mode", "constant") == "constant") {
    const DType dtype = step.dtype(0);
    if (dtype == DType::kUndefined) return step.cannot("the type of the input is not known");
    TRY(Value * constant, step.scalar(dtype, static_cast<double>(value), "pad_value"));
    step.node.set_input(2, constant);
  }
  step.ints_to_input("pads", 1);
  step.node.remove_attribute("value");
  return ok();
}

}  // namespace

namespace {

/// Pads for all axes, where only some were named.
Status step_all_axes(StepContext& step) {
  Node& node = step.node;
  if (!step.has_input(3)) return ok();
  const auto axes = step.constant_ints(3);
  const std::optional<size_t> rank = step.rank(0);
  if (!axes || !rank) return step.cannot("the axes must be constant there, and the rank known");
  std::vector<int64_t> places;
  for (const int64_t axis : *axes)
    places.push_back(axis < 0 ? axis + static_cast<int64_t>(*rank) : axis);
  const auto all = static_cast<int64_t>(*rank);
  for (const int64_t place : places)
    if (place < 0 || place >= all) return step.cannot("an axis is out of range");
  const size_t count = places.size();
  if (const auto pads = step.constant_ints(1); pads && pads->size() == 2 * count) {
    std::vector<int64_t> full(2 * *rank, 0);
    for (size_t i = 0; i < count; ++i) {
      full[static_cast<size_t>(places[i])] = (*pads)[i];
      full[static_cast<size_t>(places[i] + all)] = (*pads)[count + i];
    }
    node.set_input(1, step.ints(full, "pads"));
  } else {
    for (size_t i = 0; i < count; ++i) places.push_back(places[i] + all);
    Value* const none = step.ints(std::vector<int64_t>(2 * *rank, 0), "no_pads");
    Node& full =
        step.before("ScatterElements", {none, step.ints(places, "places"), node.input(1)}, "pads");
    node.set_input(1, full.output(0));
  }
  node.remove_input(3);
  return ok();
}

/// mode "wrap": pieces of the other end beside the tensor, axis by axis.
Status step_wrap_by_pieces(StepContext& step) {
  if (step.get_string("mode", "constant") != "wrap") return ok();
  const auto pads = step.constant_ints(1);
  const std::optional<size_t> rank = step.rank(0);
  std::vector<int64_t> axes;
  if (rank)
    for (size_t i = 0; i < *rank; ++i) axes.push_back(static_cast<int64_t>(i));
  if (step.has_input(3)) {
    const auto given = step.constant_ints(3);
    axes = given.value_or(std::vector<int64_t>());
  }
  if (!pads || axes.empty() || pads->size() != 2 * axes.size())
    return step.cannot("pads of mode wrap must be constant there");
  std::string text, now = "data";
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t begin = (*pads)[i], end = (*pads)[axes.size() + i];
    if (begin == 0 && end == 0) continue;
    const auto length =
        step.dim(0, static_cast<size_t>(
                        axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank.value_or(0)) : axes[i]));
    if (begin < 0 || end < 0 || !length || begin > *length || end > *length)
      return step.cannot(
          "it had no mode wrap, and pads beyond the length of an axis cannot be pieced");
    const std::string n = std::to_string(i), next = "padded_" + n;
    text += int_list("axis_" + n, {{axes[i]}});
    std::string parts;
    if (begin > 0) {
      text += int_list("from_" + n, {{*length - begin}}) + int_list("to_" + n, {{*length}}) +
              "front_" + n + " = Slice (" + now + ", from_" + n + ", to_" + n + ", axis_" + n +
              ")\n";
      parts = "front_" + n + ", ";
    }
    parts += now;
    if (end > 0) {
      text += int_list("start_" + n, {{0}}) + int_list("count_" + n, {{end}}) + "back_" + n +
              " = Slice (" + now + ", start_" + n + ", count_" + n + ", axis_" + n + ")\n";
      parts += ", back_" + n;
    }
    text += next + " = Concat <axis = " + std::to_string(axes[i]) + "> (" + parts + ")\n";
    now = next;
  }
  return step.replace(18, text + "output = Identity (" + now + ")\n");
}

Status step_pads_back_to_attribute(StepContext& step) {
  Node& node = step.node;
  float value = 0;
  if (step.has_input(2) && step.get_string("mode", "constant") == "constant") {
    const auto constant = step.constant_value(2);
    if (!constant || constant->size() != 1) return step.cannot("the value must be constant there");
    value = static_cast<float>(constant->get_double(0));
  }
  if (!step.constant_ints(1)) return step.cannot("the pads must be constant there");
  CHECK_OK(step.ints_to_attribute(1, "pads"));
  while (node.inputs().size() > 1)
    node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
  if (value != 0) node.set_float("value", value);
  return ok();
}

}  // namespace

OPERATOR(Pad) = {
    .name = "Pad",
    .doc = "adds (or, with negative pads, removes) elements at the borders",
    .versions = {1, 2, 11, 13, 18, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"data", "T"},
            {"pads", "tensor(int64)", kSingle, {.since = 11}},
            {"constant_value", "T", kOptional, {.since = 11}},
            {"axes", "Tind", kOptional, {.since = 18}},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"mode", "constant"},
            {"paddings", required(Attr::kInts), {.until = 1}},
            {"value", 0.0f, {.until = 10}},
            {"pads", required(Attr::kInts), {.since = 2, .until = 10}},
        },
    .types =
        {
            {"T",
             {{1, kFloats},
              {11, kInts},
              {13, kComplex | kStr | kBool | kBf16},
              {21, kFp8 | kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
            {"Tind", {{18, kIndices}}, {.since = 18}},
        },
    .infer = infer_pad,
    .reference = run_pad,
    .up = {{1, 2, step_rename_paddings}, {2, 11, step_pads_to_input}},
    .down = {{19, 18, step_wrap_by_pieces},
             {18, 13, step_all_axes},
             {11, 2, step_pads_back_to_attribute}},
};

}  // namespace tombolo::ops
