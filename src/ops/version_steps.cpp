#include "ops/version_steps.h"

#include <cmath>
#include <numeric>

#include "ops/schema.h"

namespace tombolo::ops {

Status step_numpy_broadcast(StepContext& step) {
  // Without an axis the shapes match at their ends, which is numpy's rule too.
  if (step.get_int("broadcast", 0) != 0 && step.has("axis")) {
    const int64_t axis = step.get_int("axis", 0);
    if (axis < 0) return step.cannot("a negative axis of broadcasting has no defined meaning");
    const std::optional<size_t> a = step.rank(0), b = step.rank(1);
    if (!a || !b) return step.cannot("axis of broadcasting: the rank of an input is not known");
    if (axis > static_cast<int64_t>(*a)) return step.cannot("axis of broadcasting is out of range");
    const int64_t behind = static_cast<int64_t>(*a) - axis - static_cast<int64_t>(*b);
    if (behind < 0 && *b != 0) return step.cannot("axis of broadcasting is out of range");
    if (behind > 0 && *b != 0) {
      std::vector<int64_t> axes(static_cast<size_t>(behind));
      std::iota(axes.begin(), axes.end(), static_cast<int64_t>(*b));
      Node& unsqueeze = step.before("Unsqueeze", {step.node.input(1)}, "aligned");
      unsqueeze.set_ints("axes", axes);
      step.node.set_input(1, unsqueeze.output(0));
    }
  }
  step.node.remove_attribute("broadcast");
  step.node.remove_attribute("axis");
  return ok();
}

Status step_axes_to_input(StepContext& step) {
  const std::optional<std::vector<int64_t>> axes = step.get_ints("axes");
  if (axes && !axes->empty())
    step.ints_to_input("axes", 1);
  else
    step.node.remove_attribute("axes");
  return ok();
}

Status step_one_axis(StepContext& step) {
  const int64_t axis = step.get_int("axis", 1);
  Node& node = step.node;
  const std::optional<size_t> rank = step.rank(0);
  if (axis == -1 || (rank && axis == static_cast<int64_t>(*rank) - 1)) {
    node.set_int("axis", -1);
    return ok();
  }
  // y = reshape(softmax(flatten(x, axis)), shape(x))
  Value* const x = node.input(0);
  if (x == nullptr || node.output(0) == nullptr) return step.cannot("an input or output is absent");
  Node& shape = step.before("Shape", {x}, "shape");
  Node& flatten = step.before("Flatten", {x}, "flat");
  flatten.set_int("axis", axis);
  node.set_input(0, flatten.output(0));
  node.set_int("axis", -1);
  step.after("Reshape").add_input(shape.output(0));
  return ok();
}

Status step_whole_exponent(StepContext& step) {
  const float p = step.get_float("p", 2.0f);
  if (!(p >= 1 && p <= 1e6f) || p != std::floor(p)) return step.cannot("p is not a whole number");
  if (step.node.op_type() == "LpPool" && !step.has("kernel_shape"))
    return step.cannot("there is no kernel_shape");
  step.node.set_int("p", static_cast<int64_t>(p));
  return ok();
}

Status step_no_integers(StepContext& step) {
  const DType dtype = step.dtype(0);
  if (dtype != DType::kUndefined && kInts.has_tensor(dtype))
    return step.cannot("the newer version takes no integers");
  return ok();
}

Status step_deprecated(StepContext& step) {
  return step.cannot("the operator is deprecated and nothing newer is its equal");
}

Status step_drop_output_sequence(StepContext& step) {
  step.node.remove_attribute("output_sequence");
  return ok();
}

}  // namespace tombolo::ops
