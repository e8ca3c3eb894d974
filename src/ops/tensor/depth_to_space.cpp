#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(DepthToSpace) = {
    .name = "DepthToSpace",
    .doc = "moves blocks of channels into height and width",
    .versions = {1, 11, 13, 28},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"blocksize", required(Attr::kInt)},
            {"mode", "DCR", {.since = 11}},
        },
    .types = {{"T", {{1, kAll}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 28}, .opset = 28}},
};

}  // namespace tombolo::ops
