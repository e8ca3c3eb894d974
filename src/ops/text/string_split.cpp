#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(StringSplit) = {
    .name = "StringSplit",
    .doc = "splits each string, with the number of parts",
    .versions = {20},
    .inputs = {{"X", "T1"}},
    .outputs =
        {
            {"Y", "T2"},
            {"Z", "T3"},
        },
    .attributes =
        {
            {"delimiter", Attr::kString},
            {"maxsplit", Attr::kInt},
        },
    .types =
        {
            {"T1", {{20, kStr}}},
            {"T2", {{20, kStr}}},
            {"T3", {{20, kI64}}},
        },
};

}  // namespace tombolo::ops
