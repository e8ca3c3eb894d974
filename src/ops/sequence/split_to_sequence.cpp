#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_split_to_sequence(InferContext& context) {
  const SymShape* data = context.shape(0);
  InferType element = InferType::tensor(context.elem(0));
  if (data != nullptr) {
    TRY(const size_t axis,
        checked_axis(context, context.attributes.get_int("axis", 0), data->size()));
    SymShape out = *data;
    bool squeezed = false;
    if (!context.has_input(1)) {
      squeezed = context.attributes.get_int("keepdims", 1) == 0;
      out[axis] = 1;
    } else {
      // A scalar: chunks of that length, the last may be shorter. A list: their lengths.
      const SymShape* split = context.ints(1);
      const SymShape* split_shape = context.shape(1);
      SymDim length;
      if (split != nullptr && split_shape != nullptr && !split->empty()) {
        length = (*split)[0];
        if (split_shape->empty() && !modulo(out[axis], length).equals(SymDim(0))) length = SymDim();
        for (const SymDim& part : *split)
          if (!part.equals((*split)[0])) length = SymDim();
      }
      out[axis] = length;
    }
    if (squeezed) out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
    element.shape = std::move(out);
  }
  context.set_output(0, InferType::sequence(std::move(element)));
  return ok();
}
}  // namespace

OPERATOR(SplitToSequence) = {
    .name = "SplitToSequence",
    .doc = "cuts a tensor into a sequence of parts",
    .versions = {11, 24},
    .inputs =
        {
            {"input", "T"},
            {"split", "I", kOptional},
        },
    .outputs = {{"output_sequence", "S"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
        },
    .types =
        {
            {"T", {{11, kAll}, {24, kBf16}}},
            {"I", {{11, kIndices}}},
            {"S", {{11, seq_of(kAll)}, {24, seq_of(kBf16)}}},
        },
    .infer = infer_split_to_sequence,
};

}  // namespace tombolo::ops
