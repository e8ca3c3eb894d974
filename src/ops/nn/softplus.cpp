#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Softplus) = {
    .name = "Softplus",
    .doc = "log(1 + e^x)",
    .versions = {1, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.opset = 18}},
};

}  // namespace tombolo::ops
