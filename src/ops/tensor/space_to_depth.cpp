#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SpaceToDepth) = {
    .name = "SpaceToDepth",
    .doc = "moves blocks of height and width into channels",
    .versions = {1, 13, 28},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"blocksize", required(Attr::kInt)},
            {"mode", "DCR", {.since = 28}},
        },
    .types = {{"T", {{1, kAll}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 28}, .opset = 28}},
};

}  // namespace tombolo::ops
