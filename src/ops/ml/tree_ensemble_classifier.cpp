#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(TreeEnsembleClassifier) = {
    .name = "TreeEnsembleClassifier",
    .domain = "ai.onnx.ml",
    .doc = "class by decision trees, in the older attribute layout",
    .versions = {1, 3, 5},
    .deprecated = {5},
    .inputs = {{"X", "T1"}},
    .outputs =
        {
            {"Y", "T2"},
            {"Z", "tensor(float)"},
        },
    .attributes =
        {
            {"base_values", Attr::kFloats},
            {"class_ids", Attr::kInts},
            {"class_nodeids", Attr::kInts},
            {"class_treeids", Attr::kInts},
            {"class_weights", Attr::kFloats},
            {"classlabels_int64s", Attr::kInts},
            {"classlabels_strings", Attr::kStrings},
            {"nodes_falsenodeids", Attr::kInts},
            {"nodes_featureids", Attr::kInts},
            {"nodes_hitrates", Attr::kFloats},
            {"nodes_missing_value_tracks_true", Attr::kInts},
            {"nodes_modes", Attr::kStrings},
            {"nodes_nodeids", Attr::kInts},
            {"nodes_treeids", Attr::kInts},
            {"nodes_truenodeids", Attr::kInts},
            {"nodes_values", Attr::kFloats},
            {"post_transform", "NONE"},
            {"base_values_as_tensor", Attr::kTensor, {.since = 3}},
            {"class_weights_as_tensor", Attr::kTensor, {.since = 3}},
            {"nodes_hitrates_as_tensor", Attr::kTensor, {.since = 3}},
            {"nodes_values_as_tensor", Attr::kTensor, {.since = 3}},
        },
    .types =
        {
            {"T1", {{1, kFloats32 | kIndices}}},
            {"T2", {{1, kI64 | kStr}}},
        },
};

}  // namespace tombolo::ops
