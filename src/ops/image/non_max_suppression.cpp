#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_non_max_suppression(InferContext& context) {
  set_shape(context, 0, {context.host.fresh_symbol("selected"), SymDim(3)});
  return ok();
}
}  // namespace

OPERATOR(NonMaxSuppression) = {
    .name = "NonMaxSuppression",
    .doc = "picks boxes by score, dropping those that overlap a better one",
    .versions = {10, 11},
    .inputs =
        {
            {"boxes", "tensor(float)"},
            {"scores", "tensor(float)"},
            {"max_output_boxes_per_class", "tensor(int64)", kOptional},
            {"iou_threshold", "tensor(float)", kOptional},
            {"score_threshold", "tensor(float)", kOptional},
        },
    .outputs = {{"selected_indices", "tensor(int64)"}},
    .attributes = {{"center_point_box", 0}},
    .infer = infer_non_max_suppression,
};

}  // namespace tombolo::ops
