#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(LpPool) = {
    .name = "LpPool",
    .doc = "p-norm of each window",
    .versions = {1, 2, 11, 18, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"kernel_shape", Attr::kInts, {.until = 1}},
            {"kernel_shape", required(Attr::kInts), {.since = 2}},
            {"p", 2.0f, {.until = 1}},
            {"p", 2, {.since = 2}},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
            {"ceil_mode", 0, {.since = 18}},
            {"dilations", Attr::kInts, {.since = 18}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
