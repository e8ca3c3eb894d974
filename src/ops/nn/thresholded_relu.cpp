#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ThresholdedRelu) = {
    .name = "ThresholdedRelu",
    .doc = "x above alpha, else 0",
    .versions = {10, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"alpha", 1.0f}},
    .types = {{"T", {{10, kFloats}, {22, kBf16}}}},
    .functions = {{.opset = 18}},
};

}  // namespace tombolo::ops
