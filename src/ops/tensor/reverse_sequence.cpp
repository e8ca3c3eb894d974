#include "ops/infer_generic.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_reverse_sequence(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* lengths, context.input(1));
  CHECK_OK(check_index_type(*lengths));
  const int64_t batch_axis = context.attributes.get_int("batch_axis", 1);
  const int64_t time_axis = context.attributes.get_int("time_axis", 0);
  const bool apart = (batch_axis == 0 && time_axis == 1) || (batch_axis == 1 && time_axis == 0);
  if (x->rank() < 2 || !apart)
    return context.error("batch_axis and time_axis must be 0 and 1 or 1 and 0, are " +
                         std::to_string(batch_axis) + " and " + std::to_string(time_axis) +
                         ", for " + to_string(*x));
  const int64_t batch = x->dim(static_cast<size_t>(batch_axis));
  const int64_t times = x->dim(static_cast<size_t>(time_axis));
  if (lengths->rank() != 1 || lengths->dim(0) != batch)
    return context.error("sequence_lens must have " + std::to_string(batch) + " elements, is " +
                         to_string(*lengths));
  TRY(Tensor * out, context.output(0, x->dtype(), x->dims()));
  const int64_t run = product(x->dims(), 2, x->rank());
  const int64_t batch_stride = batch_axis == 0 ? times * run : run;
  const int64_t time_stride = batch_axis == 0 ? run : batch * run;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths->get_int64(b);
    if (length < 0 || length > times)
      return context.error("sequence length " + std::to_string(length) + " of sample " +
                           std::to_string(b) + " is out of range for " + std::to_string(times) +
                           " steps");
    for (int64_t t = 0; t < times; ++t) {
      const int64_t from = t < length ? length - 1 - t : t;
      copy_elements(*x, b * batch_stride + from * time_stride, *out,
                    b * batch_stride + t * time_stride, run);
    }
  }
  return ok();
}

}  // namespace

OPERATOR(ReverseSequence) = {
    .name = "ReverseSequence",
    .doc = "reverses the first n elements of each sequence of a batch",
    .versions = {10, 28},
    .inputs =
        {
            {"input", "T"},
            {"sequence_lens", "tensor(int64)"},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"batch_axis", 1},
            {"time_axis", 0},
        },
    .types = {{"T", {{10, kAll}, {28, kBf16}}}},
    .infer = infer_unary,
    .reference = run_reverse_sequence,
};

}  // namespace tombolo::ops
