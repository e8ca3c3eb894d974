#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Relu) = {
    .name = "Relu",
    .doc = "max(x, 0)",
    .versions = {1, 6, 13, 14},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}, {14, kSigned}}}},
    .functions = {{.versions = {.since = 14}, .opset = 18}},
};

}  // namespace tombolo::ops
