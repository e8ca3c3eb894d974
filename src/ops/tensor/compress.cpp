#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_compress(InferContext& context) {
  CHECK_OK(expect_rank(context, 1, 1));
  // How many are picked: known when the condition is.
  SymDim picked;
  const SymShape* condition = context.ints(1);
  if (condition != nullptr) {
    picked = 0;
    for (const SymDim& flag : *condition) picked = picked + flag;
  }
  if (picked.is_unknown()) picked = context.host.fresh_symbol("compressed");
  const auto axis = context.attributes.get_int("axis");
  const SymShape* data = context.shape(0);
  if (!axis) {
    set_shape(context, 0, {picked});
    return ok();
  }
  if (data == nullptr) return ok();
  TRY(const size_t index, checked_axis(context, *axis, data->size()));
  SymShape out = *data;
  out[index] = picked;
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(Compress) = {
    .name = "Compress",
    .doc = "keeps the slices whose flag is set",
    .versions = {9, 11, 28},
    .inputs =
        {
            {"input", "T"},
            {"condition", "T1"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", Attr::kInt}},
    .types =
        {
            {"T", {{9, kAll}, {28, kBf16}}},
            {"T1", {{9, kBool}}},
        },
    .infer = infer_compress,
};

}  // namespace tombolo::ops
