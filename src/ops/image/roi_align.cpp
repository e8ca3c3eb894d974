#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_roi_align(InferContext& context) {
  CHECK_OK(expect_rank(context, 0, 4));
  CHECK_OK(expect_rank(context, 1, 2));
  CHECK_OK(expect_rank(context, 2, 1));
  const SymShape* x = context.shape(0);
  const SymShape* rois = context.shape(1);
  const SymShape* batch = context.shape(2);
  SymDim count = rois != nullptr ? (*rois)[0] : SymDim();
  if (batch != nullptr) {
    TRY(count, unify_dims(context, count, (*batch)[0], "rois against batch_indices"));
  }
  set_shape(context, 0,
            {count, x != nullptr ? (*x)[1] : SymDim(),
             SymDim(context.attributes.get_int("output_height", 1)),
             SymDim(context.attributes.get_int("output_width", 1))});
  return ok();
}
}  // namespace

OPERATOR(RoiAlign) = {
    .name = "RoiAlign",
    .doc = "samples regions on a grid by bilinear interpolation",
    .versions = {10, 16, 22},
    .inputs =
        {
            {"X", "T1"},
            {"rois", "T1"},
            {"batch_indices", "T2"},
        },
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"mode", "avg"},
            {"output_height", 1},
            {"output_width", 1},
            {"sampling_ratio", 0},
            {"spatial_scale", 1.0f},
            {"coordinate_transformation_mode", "half_pixel", {.since = 16}},
        },
    .types =
        {
            {"T1", {{10, kFloats}, {22, kBf16}}},
            {"T2", {{10, kI64}}},
        },
    .infer = infer_roi_align,
};

}  // namespace tombolo::ops
