#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(AveragePool) = {
    .name = "AveragePool",
    .doc = "mean of each window",
    .versions = {1, 7, 10, 11, 19, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"kernel_shape", required(Attr::kInts)},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
            {"count_include_pad", 0, {.since = 7}},
            {"ceil_mode", 0, {.since = 10}},
            {"dilations", Attr::kInts, {.since = 19}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
