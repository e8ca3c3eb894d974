#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_top_k(InferContext& context) {
  const SymShape* x = context.shape(0);
  SymDim k;
  if (context.opset < 10) {
    k = context.attributes.get_int("k", 1);
  } else if (const auto given = scalar_of(context, 1)) {
    k = *given;
  }
  if (k.is_value() && k.value() < 0) return context.error("k is " + k.to_string());
  if (x == nullptr) return ok();
  if (x->empty()) return context.error("X is a scalar: there is no axis to sort");
  TRY(const size_t axis, checked_axis(context, context.attributes.get_int("axis", -1), x->size()));
  if (k.is_value() && (*x)[axis].is_value() && k.value() > (*x)[axis].value())
    return context.error("k is " + k.to_string() + ", but axis " + std::to_string(axis) +
                         " has only " + (*x)[axis].to_string());
  SymShape out = *x;
  out[axis] = k;
  set_shape(context, 1, out);
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(TopK) = {
    .name = "TopK",
    .doc = "the k largest or smallest elements along an axis, and their indices",
    .versions = {1, 10, 11, 24},
    .inputs =
        {
            {"X", "T"},
            {"K", "tensor(int64)", kSingle, {.since = 10}},
        },
    .outputs =
        {
            {"Values", "T"},
            {"Indices", "I"},
        },
    .attributes =
        {
            {"axis", -1},
            {"k", required(Attr::kInt), {.until = 9}},
            {"largest", 1, {.since = 11}},
            {"sorted", 1, {.since = 11}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {11, kInts}, {24, kBf16}}},
            {"I", {{1, kI64}}},
        },
    .infer = infer_top_k,
};

}  // namespace tombolo::ops
