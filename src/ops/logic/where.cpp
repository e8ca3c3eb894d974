#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_where(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  const SymShape* condition = context.ints(0);
  const SymShape* x = context.ints(1);
  const SymShape* y = context.ints(2);
  if (condition == nullptr || x == nullptr || y == nullptr) return ok();
  const size_t size = std::max(condition->size(), std::max(x->size(), y->size()));
  const auto fits = [size](const SymShape* s) { return s->size() == size || s->size() == 1; };
  if (!fits(condition) || !fits(x) || !fits(y)) return ok();
  const auto at = [](const SymShape* s, size_t i) { return (*s)[s->size() == 1 ? 0 : i]; };
  SymShape out;
  for (size_t i = 0; i < size; ++i) {
    const SymDim which = at(condition, i), a = at(x, i), b = at(y, i);
    if (which.is_value())
      out.push_back(which.value() != 0 ? a : b);
    else
      out.push_back(a.equals(b) ? a : SymDim());
  }
  context.set_value(0, std::move(out));
  return ok();
}
}  // namespace

namespace {

Status run_where(KernelContext& context) {
  TRY(const Tensor* condition, context.input(0));
  TRY(const Tensor* x, context.input(1));
  TRY(const Tensor* y, context.input(2));
  if (condition->dtype() != DType::kBool)
    return context.error("the condition must be bool, is " + to_string(*condition));
  if (x->dtype() != y->dtype())
    return context.error("X and Y must have one type, but are " + to_string(*x) + " and " +
                         to_string(*y));
  const Tensor* const inputs[] = {condition, x, y};
  TRY(const Broadcast broadcast, Broadcast::of(inputs));
  TRY(Tensor * out, context.output(0, x->dtype(), broadcast.output));
  const bool* holds = condition->data<bool>();
  // Runs of one condition are copied together.
  BroadcastCursor cursor(broadcast, 0, broadcast.count);
  while (!cursor.done()) {
    const int64_t limit = cursor.run(INT64_MAX);
    const int64_t start = cursor.offset(0);
    const bool first = holds[start];
    int64_t count = 1;
    while (count < limit && holds[start + count * broadcast.steps[0]] == first) ++count;
    const size_t taken = first ? 1 : 2;
    if (broadcast.steps[taken])
      copy_elements(*inputs[taken], cursor.offset(taken), *out, cursor.at(), count);
    else
      fill_elements(*inputs[taken], cursor.offset(taken), *out, cursor.at(), count);
    cursor.advance(count);
  }
  return ok();
}

}  // namespace

OPERATOR(Where) = {
    .name = "Where",
    .doc = "x where the condition holds, else y, with broadcasting",
    .versions = {9, 16},
    .inputs =
        {
            {"condition", "B"},
            {"X", "T"},
            {"Y", "T"},
        },
    .outputs = {{"output", "T"}},
    .types =
        {
            {"B", {{9, kBool}}},
            {"T", {{9, kAll}, {16, kBf16}}},
        },
    .infer = infer_where,
    .reference = run_where,
};

}  // namespace tombolo::ops
