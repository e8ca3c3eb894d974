#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(CategoryMapper) = {
    .name = "CategoryMapper",
    .domain = "ai.onnx.ml",
    .doc = "maps strings to numbers or back by a table",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"cats_int64s", Attr::kInts},
            {"cats_strings", Attr::kStrings},
            {"default_int64", -1},
            {"default_string", "_Unused"},
        },
    .types =
        {
            {"T1", {{1, kI64 | kStr}}},
            {"T2", {{1, kI64 | kStr}}},
        },
};

}  // namespace tombolo::ops
