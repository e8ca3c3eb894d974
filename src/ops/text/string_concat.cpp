#include "ops/infer_generic.h"
#include "ops/kernel_context.h"
#include "ops/kernels/broadcast.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_string_concat(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* y, context.input(1));
  if (!x->is_string() || !y->is_string())
    return context.error("strings are needed, not " + to_string(*x) + " and " + to_string(*y));
  const Tensor* const both[] = {x, y};
  TRY(const Broadcast broadcast, Broadcast::of(both));
  TRY(Tensor * out, context.output(0, DType::kString, broadcast.output));
  for (BroadcastCursor at(broadcast, 0, broadcast.count); !at.done(); at.advance(1))
    out->strings()[static_cast<size_t>(at.at())] = x->strings()[static_cast<size_t>(at.offset(0))] +
                                                   y->strings()[static_cast<size_t>(at.offset(1))];
  return ok();
}

}  // namespace

OPERATOR(StringConcat) = {
    .name = "StringConcat",
    .doc = "joins strings pairwise with broadcasting",
    .versions = {20},
    .inputs =
        {
            {"X", "T"},
            {"Y", "T"},
        },
    .outputs = {{"Z", "T"}},
    .types = {{"T", {{20, kStr}}}},
    .infer = infer_broadcast,
    .reference = run_string_concat,
};

}  // namespace tombolo::ops
