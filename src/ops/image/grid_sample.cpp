#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_grid_sample(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* grid = context.shape(1);
  const SymShape* known = x != nullptr ? x : grid;
  if (known == nullptr) return ok();
  const size_t rank = known->size();
  if (rank < 3 || (x != nullptr && grid != nullptr && grid->size() != rank))
    return context.error("X and grid must have one rank of at least 3");
  SymShape out(rank);
  if (x != nullptr) {
    out[0] = (*x)[0];
    out[1] = (*x)[1];
  }
  if (grid != nullptr) {
    if (out[0].is_unknown()) out[0] = (*grid)[0];
    for (size_t i = 2; i < rank; ++i) out[i] = (*grid)[i - 1];
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(GridSample) = {
    .name = "GridSample",
    .doc = "samples a tensor at given positions",
    .versions = {16, 20, 22},
    .inputs =
        {
            {"X", "T1"},
            {"grid", "T2"},
        },
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"align_corners", 0},
            {"mode", "bilinear", {.until = 19}},
            {"mode", "linear", {.since = 20}},
            {"padding_mode", "zeros"},
        },
    .types =
        {
            {"T1", {{16, kAll}, {22, kBf16}}},
            {"T2", {{16, kFloats}, {22, kBf16}}},
        },
    .infer = infer_grid_sample,
};

}  // namespace tombolo::ops
