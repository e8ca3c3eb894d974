#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_arg(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  if (data->empty()) return ok();
  TRY(const size_t axis,
      checked_axis(context, context.attributes.get_int("axis", 0), data->size()));
  SymShape out = *data;
  if (context.attributes.get_int("keepdims", 1) != 0)
    out[axis] = 1;
  else
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  context.set_tensor(0, DType::kInt64, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(ArgMax) = {
    .name = "ArgMax",
    .doc = "index of the maximum along an axis",
    .versions = {1, 11, 12, 13},
    .inputs = {{"data", "T"}},
    .outputs = {{"reduced", "tensor(int64)"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
            {"select_last_index", 0, {.since = 12}},
        },
    .types = {{"T", {{1, kNumbers}, {13, kBf16}}}},
    .infer = infer_arg,
};

OPERATOR(ArgMin) = {
    .name = "ArgMin",
    .doc = "index of the minimum along an axis",
    .versions = {1, 11, 12, 13},
    .inputs = {{"data", "T"}},
    .outputs = {{"reduced", "tensor(int64)"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
            {"select_last_index", 0, {.since = 12}},
        },
    .types = {{"T", {{1, kNumbers}, {13, kBf16}}}},
    .infer = infer_arg,
};

}  // namespace tombolo::ops
