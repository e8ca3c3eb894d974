#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/sequence.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_sequence_at(InferContext& context) {
  if (context.input(0).element) context.set_output(0, *context.input(0).element);
  return ok();
}
Status infer_sequence_length(InferContext& context) {
  context.set_tensor(0, DType::kInt64, {});
  return ok();
}
Status run_sequence_at(KernelContext& context) {
  TRY(const SequenceValue* sequence, sequence_input(context, 0));
  TRY(const int64_t given, scalar_int(context, 1, "position"));
  TRY(const size_t at, sequence_position(context, given, sequence->items.size()));
  context.set_output(0, sequence->items[at]);
  return ok();
}

}  // namespace

OPERATOR(SequenceAt) = {
    .name = "SequenceAt",
    .doc = "the tensor at a position",
    .versions = {11},
    .inputs =
        {
            {"input_sequence", "S"},
            {"position", "I"},
        },
    .outputs = {{"tensor", "T"}},
    .types =
        {
            {"S", {{11, seq_of(kAll)}}},
            {"T", {{11, kAll}}},
            {"I", {{11, kIndices}}},
        },
    .infer = infer_sequence_at,
    .reference = run_sequence_at,
};

namespace {

Status run_sequence_length(KernelContext& context) {
  TRY(const SequenceValue* sequence, sequence_input(context, 0));
  TRY(Tensor * out, context.output(0, DType::kInt64, {}));
  *out->data<int64_t>() = static_cast<int64_t>(sequence->items.size());
  return ok();
}

}  // namespace

OPERATOR(SequenceLength) = {
    .name = "SequenceLength",
    .doc = "the number of tensors",
    .versions = {11},
    .inputs = {{"input_sequence", "S"}},
    .outputs = {{"length", "I"}},
    .types =
        {
            {"S", {{11, seq_of(kAll)}}},
            {"I", {{11, kI64}}},
        },
    .infer = infer_sequence_length,
    .reference = run_sequence_length,
};

}  // namespace tombolo::ops
