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
  const std::string *a = x->strings().data(), *b = y->strings().data();
  std::string* to = out->strings().data();
  const auto join = [to](int64_t at, const std::string& left, const std::string& right) {
    to[at].reserve(left.size() + right.size());
    to[at].append(left).append(right);
  };
  const bool same = x->dims() == y->dims();
  if (same || x->size() == 1 || y->size() == 1) {
    const int64_t step_a = x->size() == 1 ? 0 : 1, step_b = y->size() == 1 ? 0 : 1;
    for (int64_t i = 0; i < out->size(); ++i) join(i, a[i * step_a], b[i * step_b]);
    return ok();
  }
  for (BroadcastCursor at(broadcast, 0, broadcast.count); !at.done(); at.advance(1))
    join(at.at(), a[at.offset(0)], b[at.offset(1)]);
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
