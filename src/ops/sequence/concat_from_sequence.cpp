#include "ops/infer_helpers.h"
#include "ops/kernels/join.h"
#include "ops/kernels/sequence.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_concat_from_sequence(InferContext& context) {
  const InferType& sequence = context.input(0);
  if (!sequence.element || !sequence.element->is_tensor()) return ok();
  InferType type = InferType::tensor(sequence.element->elem);
  if (const auto& shape = sequence.element->shape) {
    const bool stacks = context.attributes.get_int("new_axis", 0) != 0;
    const size_t rank = shape->size() + (stacks ? 1 : 0);
    TRY(const size_t axis, checked_axis(context, context.attributes.get_int("axis", 0), rank));
    SymShape out = *shape;
    if (stacks)
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), SymDim());
    else
      out[axis] = SymDim();
    type.shape = std::move(out);
  }
  context.set_output(0, std::move(type));
  return ok();
}
Status run_concat_from_sequence(KernelContext& context) {
  TRY(const SequenceValue* sequence, sequence_input(context, 0));
  const auto axis = context.attributes.get_int("axis");
  if (!axis) return context.error("attribute axis is missing");
  std::vector<Tensor> items;
  for (const RunValue& item : sequence->items) {
    if (!item.is_tensor()) return context.error("a sequence of tensors is needed");
    items.push_back(item.tensor());
  }
  if (context.attributes.get_int("new_axis", 0) != 0) {
    TRY(Tensor out, stack(context, items, *axis));
    context.set_output(0, std::move(out));
    return ok();
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& item : items) pointers.push_back(&item);
  TRY(Tensor out, concatenate(context, pointers, *axis));
  context.set_output(0, std::move(out));
  return ok();
}

}  // namespace

OPERATOR(ConcatFromSequence) = {
    .name = "ConcatFromSequence",
    .doc = "joins the tensors of a sequence along an old or a new axis",
    .versions = {11},
    .inputs = {{"input_sequence", "S"}},
    .outputs = {{"concat_result", "T"}},
    .attributes =
        {
            {"axis", required(Attr::kInt)},
            {"new_axis", 0},
        },
    .types =
        {
            {"S", {{11, seq_of(kAll)}}},
            {"T", {{11, kAll}}},
        },
    .infer = infer_concat_from_sequence,
    .reference = run_concat_from_sequence,
};

}  // namespace tombolo::ops
