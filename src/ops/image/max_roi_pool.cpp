#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_max_roi_pool(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* rois = context.shape(1);
  const auto pooled = context.attributes.get_ints("pooled_shape");
  if (pooled.size() != 2)
    return context.error("pooled_shape must hold 2 numbers, not " + std::to_string(pooled.size()));
  CHECK_OK(expect_rank(context, 0, 4));
  CHECK_OK(expect_rank(context, 1, 2));
  set_shape(context, 0,
            {rois != nullptr ? (*rois)[0] : SymDim(), x != nullptr ? (*x)[1] : SymDim(),
             SymDim(pooled[0]), SymDim(pooled[1])});
  return ok();
}
}  // namespace

OPERATOR(MaxRoiPool) = {
    .name = "MaxRoiPool",
    .doc = "maximum over each cell of a grid laid on regions",
    .versions = {1, 22},
    .inputs =
        {
            {"X", "T"},
            {"rois", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"pooled_shape", required(Attr::kInts)},
            {"spatial_scale", 1.0f},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_max_roi_pool,
};

}  // namespace tombolo::ops
