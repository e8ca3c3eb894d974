#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Shrink) = {
    .name = "Shrink",
    .doc = "x moved by bias towards zero, and 0 within [-lambd, lambd]",
    .versions = {9},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"bias", 0.0f},
            {"lambd", 0.5f},
        },
    .types = {{"T", {{9, kNumbers}}}},
    .functions = {{.opset = 18}},
};

}  // namespace tombolo::ops
