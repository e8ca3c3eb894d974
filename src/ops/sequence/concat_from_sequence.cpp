#include "ops/infer_helpers.h"
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
};

}  // namespace tombolo::ops
