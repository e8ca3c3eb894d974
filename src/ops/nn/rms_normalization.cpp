#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(RMSNormalization) = {
    .name = "RMSNormalization",
    .doc = "divides by the root mean square of the axes from `axis` on, then scales",
    .versions = {23},
    .inputs =
        {
            {"X", "T"},
            {"scale", "V"},
        },
    .outputs = {{"Y", "V"}},
    .attributes =
        {
            {"axis", -1},
            {"epsilon", 1e-05f},
            {"stash_type", 1},
        },
    .types =
        {
            {"T", {{23, kFloats | kBf16}}},
            {"V", {{23, kFloats | kBf16}}},
        },
    .functions = {{.opset = 23}},
};

}  // namespace tombolo::ops
