#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ZipMap) = {
    .name = "ZipMap",
    .domain = "ai.onnx.ml",
    .doc = "a sequence of maps from class label to the scores of each row",
    .versions = {1},
    .inputs = {{"X", "tensor(float)"}},
    .outputs = {{"Z", "T"}},
    .attributes =
        {
            {"classlabels_int64s", Attr::kInts},
            {"classlabels_strings", Attr::kStrings},
        },
    .types = {{"T", {{1, kSeqMapStrF32 | kSeqMapI64F32}}}},
};

}  // namespace tombolo::ops
