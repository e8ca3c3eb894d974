#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_sequence_insert(InferContext& context) {
  const InferType& sequence = context.input(0);
  if (!sequence.element) return ok();
  InferType element = *sequence.element;
  const InferType& tensor = context.input(1);
  if (element.elem != DType::kUndefined && tensor.elem != DType::kUndefined &&
      element.elem != tensor.elem)
    return context.error("a tensor of " + std::string(name_of(tensor.elem)) +
                         " cannot go into a sequence of " + std::string(name_of(element.elem)));
  if (element.shape && tensor.shape && element.shape->size() == tensor.shape->size()) {
    for (size_t k = 0; k < element.shape->size(); ++k)
      if (!(*element.shape)[k].equals((*tensor.shape)[k])) (*element.shape)[k] = SymDim();
  } else {
    element.shape.reset();
  }
  context.set_output(0, InferType::sequence(std::move(element)));
  return ok();
}
Status infer_sequence_erase(InferContext& context) {
  context.same_as_input(0, 0);
  return ok();
}
}  // namespace

OPERATOR(SequenceInsert) = {
    .name = "SequenceInsert",
    .doc = "a copy with a tensor inserted",
    .versions = {11},
    .inputs =
        {
            {"input_sequence", "S"},
            {"tensor", "T"},
            {"position", "I", kOptional},
        },
    .outputs = {{"output_sequence", "S"}},
    .types =
        {
            {"T", {{11, kAll}}},
            {"S", {{11, seq_of(kAll)}}},
            {"I", {{11, kIndices}}},
        },
    .infer = infer_sequence_insert,
};

OPERATOR(SequenceErase) = {
    .name = "SequenceErase",
    .doc = "a copy with a tensor removed",
    .versions = {11},
    .inputs =
        {
            {"input_sequence", "S"},
            {"position", "I", kOptional},
        },
    .outputs = {{"output_sequence", "S"}},
    .types =
        {
            {"S", {{11, seq_of(kAll)}}},
            {"I", {{11, kIndices}}},
        },
    .infer = infer_sequence_erase,
};

}  // namespace tombolo::ops
