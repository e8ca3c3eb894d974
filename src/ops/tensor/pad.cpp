#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/pad.h"
#include "ops/schema.h"
#include "ops/step_context.h"

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
};

}  // namespace tombolo::ops
