#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/sequence.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_sequence_construct(InferContext& context) {
  // The element's shape is what all tensors share.
  InferType element = context.input(0);
  for (size_t i = 1; i < context.input_count() && element.shape; ++i) {
    const SymShape* shape = context.shape(i);
    if (shape == nullptr || shape->size() != element.shape->size()) {
      element.shape.reset();
      break;
    }
    for (size_t k = 0; k < shape->size(); ++k)
      if (!(*element.shape)[k].equals((*shape)[k])) (*element.shape)[k] = SymDim();
  }
  context.set_output(0, InferType::sequence(std::move(element)));
  return ok();
}
Status infer_sequence_empty(InferContext& context) {
  const int64_t number = context.attributes.get_int("dtype", 1);
  const auto dtype = dtype_from_number(number);
  if (!dtype) return context.error("dtype is " + std::to_string(number) + ", which is no type");
  context.set_output(0, InferType::sequence(InferType::tensor(*dtype)));
  return ok();
}
Status run_sequence_construct(KernelContext& context) {
  SequenceValue sequence;
  for (size_t k = 0; k < context.input_count(); ++k) {
    TRY(const Tensor* tensor, context.input(k));
    if (k == 0) sequence.elem = tensor->dtype();
    if (tensor->dtype() != sequence.elem)
      return context.error("input " + std::to_string(k) + ", " + to_string(*tensor) +
                           ", is not of the type of input 0");
    sequence.items.emplace_back(*tensor);
  }
  context.set_output(0, std::move(sequence));
  return ok();
}

}  // namespace

OPERATOR(SequenceConstruct) = {
    .name = "SequenceConstruct",
    .doc = "a sequence of the given tensors",
    .versions = {11},
    .inputs = {{"inputs", "T", kVariadic}},
    .outputs = {{"output_sequence", "S"}},
    .types =
        {
            {"T", {{11, kAll}}},
            {"S", {{11, seq_of(kAll)}}},
        },
    .infer = infer_sequence_construct,
    .reference = run_sequence_construct,
};

namespace {

Status run_sequence_empty(KernelContext& context) {
  SequenceValue sequence;
  TRY(sequence.elem, dtype_attribute(context, "dtype", DType::kFloat32));
  context.set_output(0, std::move(sequence));
  return ok();
}

}  // namespace

OPERATOR(SequenceEmpty) = {
    .name = "SequenceEmpty",
    .doc = "a sequence without tensors",
    .versions = {11},
    .outputs = {{"output", "S"}},
    .attributes = {{"dtype", Attr::kInt}},
    .types = {{"S", {{11, seq_of(kAll)}}}},
    .infer = infer_sequence_empty,
    .reference = run_sequence_empty,
};

}  // namespace tombolo::ops
