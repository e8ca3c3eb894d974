#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
