#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(HardSigmoid) = {
    .name = "HardSigmoid",
    .doc = "alpha * x + beta limited to [0, 1]",
    .versions = {1, 6, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 0.2f},
            {"beta", 0.5f},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.versions = {.since = 6}, .opset = 18}},
};

}  // namespace tombolo::ops
