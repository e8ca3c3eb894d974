#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Gelu) = {
    .name = "Gelu",
    .doc = "x * Phi(x), exactly or by tanh",
    .versions = {20},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"approximate", "none"}},
    .types = {{"T", {{20, kFloats | kBf16}}}},
    .functions = {{.opset = 20}},
};

}  // namespace tombolo::ops
