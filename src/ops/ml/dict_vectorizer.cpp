#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(DictVectorizer) = {
    .name = "DictVectorizer",
    .domain = "ai.onnx.ml",
    .doc = "a vector with the values of a map in the order of a vocabulary",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"int64_vocabulary", Attr::kInts},
            {"string_vocabulary", Attr::kStrings},
        },
    .types =
        {
            {"T1",
             {{1, kMapI64Str | kMapI64F32 | kMapI64F64 | kMapStrI64 | kMapStrF32 | kMapStrF64}}},
            {"T2", {{1, kFloats32 | kI64 | kStr}}},
        },
};

}  // namespace tombolo::ops
