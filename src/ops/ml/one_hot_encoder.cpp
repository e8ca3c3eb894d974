#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(OneHotEncoder) = {
    .name = "OneHotEncoder",
    .domain = "ai.onnx.ml",
    .doc = "a new axis with 1 at the category of the element",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"cats_int64s", Attr::kInts},
            {"cats_strings", Attr::kStrings},
            {"zeros", 1},
        },
    .types = {{"T", {{1, kFloats32 | kIndices | kStr}}}},
};

}  // namespace tombolo::ops
