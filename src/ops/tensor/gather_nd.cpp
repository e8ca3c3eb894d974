#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_gather_nd(InferContext& context) {
  const SymShape* data = context.shape(0);
  const SymShape* indices = context.shape(1);
  if (data == nullptr || indices == nullptr) return ok();
  const int64_t batch = context.attributes.get_int("batch_dims", 0);
  if (indices->empty() || data->empty())
    return context.error("data and indices must not be scalars");
  if (!indices->back().is_value()) return ok();
  const int64_t depth = indices->back().value();
  if (batch < 0 || depth < 0 || batch + depth > static_cast<int64_t>(data->size()) ||
      batch >= static_cast<int64_t>(indices->size()))
    return context.error("the last axis of indices is " + std::to_string(depth) +
                         " with batch_dims " + std::to_string(batch) + ", but data has rank " +
                         std::to_string(data->size()));
  SymShape out(indices->begin(), indices->end() - 1);
  out.insert(out.end(), data->begin() + batch + depth, data->end());
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(GatherND) = {
    .name = "GatherND",
    .doc = "elements or slices picked by tuples of indices",
    .versions = {11, 12, 13},
    .inputs =
        {
            {"data", "T"},
            {"indices", "tensor(int64)"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"batch_dims", 0, {.since = 12}}},
    .types = {{"T", {{11, kAll}, {13, kBf16}}}},
    .infer = infer_gather_nd,
};

}  // namespace tombolo::ops
