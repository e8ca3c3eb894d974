#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/sequence.h"
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
Status run_sequence_insert(KernelContext& context) {
  TRY(const SequenceValue* sequence, sequence_input(context, 0));
  TRY(const Tensor* tensor, context.input(1));
  if (sequence->elem != DType::kUndefined && sequence->elem != tensor->dtype())
    return context.error(to_string(*tensor) + " does not fit into a sequence of " +
                         std::string(name_of(sequence->elem)));
  size_t at = sequence->items.size();
  if (context.has_input(2)) {
    TRY(const int64_t given, scalar_int(context, 2, "position"));
    const auto count = static_cast<int64_t>(at);
    if (given < -count || given > count)
      return context.error("position " + std::to_string(given) +
                           " is out of range for a sequence of length " + std::to_string(count));
    at = static_cast<size_t>(given < 0 ? given + count : given);
  }
  Tensor item = *tensor;
  if (const auto& [begin, end] = sequence->apart_from;
      item.data<std::byte>() >= begin && item.data<std::byte>() < end) {
    TRY(item, item.clone());
  }
  RunValue result = take_sequence(context, 0);
  SequenceValue& grown = *result.own_sequence();
  grown.elem = item.dtype();
  grown.items.insert(grown.items.begin() + static_cast<std::ptrdiff_t>(at),
                     RunValue(std::move(item)));
  context.set_output(0, std::move(result));
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
    .reference = run_sequence_insert,
};

namespace {

Status run_sequence_erase(KernelContext& context) {
  TRY(const SequenceValue* sequence, sequence_input(context, 0));
  int64_t given = -1;
  if (context.has_input(1)) {
    TRY(given, scalar_int(context, 1, "position"));
  }
  TRY(const size_t at, sequence_position(context, given, sequence->items.size()));
  RunValue result = take_sequence(context, 0);
  auto& items = result.own_sequence()->items;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  context.set_output(0, std::move(result));
  return ok();
}

}  // namespace

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
    .reference = run_sequence_erase,
};

}  // namespace tombolo::ops
