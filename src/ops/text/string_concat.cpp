#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(StringConcat) = {
    .name = "StringConcat",
    .doc = "joins strings pairwise with broadcasting",
    .versions = {20},
    .inputs =
        {
            {"X", "T"},
            {"Y", "T"},
        },
    .outputs = {{"Z", "T"}},
    .types = {{"T", {{20, kStr}}}},
    .infer = infer_broadcast,
};

}  // namespace tombolo::ops
