#include "ops/infer_helpers.h"
#include "ops/kernels/join.h"
#include "ops/schema.h"
#include "ops/step_context.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_concat(InferContext& context) {
  // Elements of a shape put together; a part that is not known has unknown elements.
  SymShape elements;
  bool known = context.input_count() != 0;
  for (size_t i = 0; i < context.input_count() && known; ++i) {
    const SymShape* shape = context.shape(i);
    const auto part = elements_or_unknown(context, i);
    known = part && shape != nullptr && shape->size() == 1 &&
            elements.size() + part->size() <= static_cast<size_t>(kMaxElements);
    if (known) elements.insert(elements.end(), part->begin(), part->end());
  }
  if (known) {
    bool any = elements.empty();
    for (const SymDim& element : elements) any |= !element.is_unknown();
    if (any) context.set_value(0, std::move(elements));
  }

  size_t rank = 0;
  const SymShape* first = nullptr;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const SymShape* shape = context.shape(i);
    if (shape == nullptr) continue;
    if (first == nullptr) {
      first = shape;
      rank = shape->size();
    } else if (shape->size() != rank) {
      return context.error("inputs of shapes " + shape_to_string(*first) + " and " +
                           shape_to_string(*shape) + " have different ranks");
    }
  }
  if (first == nullptr) return ok();
  const int64_t default_axis = context.opset < 4 ? 1 : 0;
  TRY(const size_t axis,
      checked_axis(context, context.attributes.get_int("axis", default_axis), rank));
  SymShape out(rank);
  SymDim total = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const SymShape* shape = context.shape(i);
    if (shape == nullptr) {
      total = SymDim();
      continue;
    }
    total = total + (*shape)[axis];
    for (size_t k = 0; k < rank; ++k) {
      if (k == axis) continue;
      TRY(out[k],
          unify_dims(context, out[k], (*shape)[k],
                     ("input " + std::to_string(i) + " of shape " + shape_to_string(*shape) +
                      " does not fit the others on axis " + std::to_string(k))
                         .c_str()));
    }
  }
  out[axis] = total;
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_concat(KernelContext& context) {
  std::vector<const Tensor*> inputs(context.input_count());
  for (size_t k = 0; k < inputs.size(); ++k) {
    TRY(inputs[k], context.input(k));
  }
  // Before operator set 4 the axis had a default.
  TRY(Tensor out, concatenate(context, inputs, context.attributes.get_int("axis", 1)));
  context.set_output(0, std::move(out));
  return ok();
}

}  // namespace

namespace {

Status step_default_axis(StepContext& step) {
  if (!step.has("axis")) step.node.set_int("axis", 1);
  return ok();
}

}  // namespace

OPERATOR(Concat) = {
    .name = "Concat",
    .doc = "joins tensors along an axis",
    .versions = {1, 4, 11, 13},
    .inputs = {{"inputs", "T", kVariadic}},
    .outputs = {{"concat_result", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 3}},
            {"axis", required(Attr::kInt), {.since = 4}},
        },
    .types = {{"T", {{1, kFloats}, {4, kInts | kComplex | kStr | kBool}, {13, kBf16}}}},
    .infer = infer_concat,
    .reference = run_concat,
    .up = {{1, 4, step_default_axis}},
    .down = {{11, 4, step_axis_from_front}},
};

}  // namespace tombolo::ops
