#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "ops/version_steps.h"

namespace tombolo::ops {

std::string typed_scalar(std::string_view name, DType dtype, double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.17g", value);
  std::string text = digits;
  // A number with a point is a value, one without the bits of a narrow type.
  if (is_float(dtype) && text.find_first_of(".en") == std::string::npos) text += ".0";
  return std::string(name) + " = Constant <value = " + std::string(name_of(dtype)) + " {" + text +
         "}> ()\n";
}

std::string int_list(std::string_view name, std::span<const int64_t> values) {
  std::string list;
  for (const int64_t value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
  return std::string(name) + " = Constant <value = int64[" + std::to_string(values.size()) + "] {" +
         list + "}> ()\n";
}

std::string int_scalar(std::string_view name, int64_t value) {
  return std::string(name) + " = Constant <value = int64 {" + std::to_string(value) + "}> ()\n";
}

Status step_as_it_is(StepContext&) { return ok(); }

Status step_axes_to_attribute(StepContext& step) {
  Node& node = step.node;
  std::vector<int64_t> axes;
  if (step.has_input(1)) {
    const auto given = step.constant_ints(1);
    if (!given) return step.cannot("the axes must be constant there");
    axes = *given;
  }
  const bool keep_all = step.get_int("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && keep_all && node.op_type().starts_with("Reduce")) {
    const Text op = node.op_type();
    if (op != "ReduceSum" && op != "ReduceMean" && op != "ReduceMax" && op != "ReduceMin" &&
        op != "ReduceProd")
      return step.cannot("it reduced all axes when none were given");
    node.set_op_type("Identity");
    node.attributes().clear();
    while (node.inputs().size() > 1)
      node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
    return ok();
  }
  while (node.inputs().size() > 1)
    node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
  node.remove_attribute("noop_with_empty_axes");
  if (!axes.empty()) node.set_ints("axes", axes);
  return ok();
}

Status step_axis_last(StepContext& step) {
  Node& node = step.node;
  const std::optional<size_t> rank = step.rank(0);
  int64_t axis = step.get_int("axis", -1);
  if (axis == -1 && step.target >= 11) {
    node.set_int("axis", -1);  // the default was 1
    return ok();
  }
  if (!rank || *rank == 0) return step.cannot("the rank of the input is not known");
  const auto last = static_cast<int64_t>(*rank) - 1;
  if (axis < 0) axis += last + 1;
  if (axis < 0 || axis > last) return step.cannot("the axis is out of range");
  node.set_int("axis", last);
  if (axis == last) return ok();
  if (node.output(0) == nullptr) return step.cannot("the output is absent");
  std::vector<int64_t> order(*rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[static_cast<size_t>(axis)], order[static_cast<size_t>(last)]);
  Node& there = step.before("Transpose", {node.input(0)}, "axis_last");
  there.set_ints("perm", order);
  node.set_input(0, there.output(0));
  step.after("Transpose").set_ints("perm", order);
  return ok();
}

Status step_axis_from_front(StepContext& step) {
  const std::optional<size_t> rank = step.rank(0);
  const auto fixed = [&](int64_t axis) -> std::optional<int64_t> {
    if (axis >= 0) return axis;
    if (!rank) return std::nullopt;
    return axis + static_cast<int64_t>(*rank);
  };
  const Error unknown =
      step.cannot("a negative axis needs the rank of the input, which is unknown");
  if (step.has("axis")) {
    const auto axis = fixed(step.get_int("axis", 0));
    if (!axis) return unknown;
    step.node.set_int("axis", *axis);
  }
  if (const auto axes = step.get_ints("axes")) {
    std::vector<int64_t> list;
    for (const int64_t one : *axes) {
      const auto axis = fixed(one);
      if (!axis) return unknown;
      list.push_back(*axis);
    }
    step.node.set_ints("axes", list);
  }
  return ok();
}

Status step_batch_second(StepContext& step) {
  Node& node = step.node;
  const bool batch_first = step.get_int("layout", 0) != 0;
  node.remove_attribute("layout");
  if (!batch_first) return ok();
  const auto turned = [&](uint32_t index, const char* hint) {
    if (!step.has_input(index)) return;
    Node& turn = step.before("Transpose", {node.input(index)}, hint);
    turn.set_ints("perm", std::array<int64_t, 3>{1, 0, 2});
    node.set_input(index, turn.output(0));
  };
  turned(0, "time_first");
  turned(5, "initial_h");
  if (node.op_type() == "LSTM") turned(6, "initial_c");
  const size_t outputs = node.outputs().size();
  for (uint32_t i = 0; i < outputs; ++i) {
    if (node.output(i) == nullptr) continue;
    Node& turn = step.after("Transpose", i);
    if (i == 0)  // [time, directions, batch, hidden] -> [batch, time, directions, hidden]
      turn.set_ints("perm", std::array<int64_t, 4>{2, 0, 1, 3});
    else
      turn.set_ints("perm", std::array<int64_t, 3>{1, 0, 2});
  }
  return ok();
}

Status step_equal_shapes(StepContext& step) {
  const auto first = step.dims(0);
  for (size_t i = 1; i < step.node.inputs().size(); ++i)
    if (!first || step.dims(i) != first)
      return step.cannot("it did not broadcast, and the shapes may differ");
  return ok();
}

Status step_no_dilations(StepContext& step) {
  const auto dilations = step.get_ints("dilations");
  if (dilations && std::any_of(dilations->begin(), dilations->end(),
                               [](int64_t dilation) { return dilation != 1; }))
    return step.cannot("it had no dilations");
  if (step.get_int("ceil_mode", 0) != 0 && (step.from == 10 || step.node.op_type() == "LpPool"))
    return step.cannot("it had no ceil_mode");
  step.node.remove_attribute("dilations");
  return ok();
}

}  // namespace tombolo::ops
