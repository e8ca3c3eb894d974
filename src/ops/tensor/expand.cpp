#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Expand) = {
    .name = "Expand",
    .doc = "broadcasts to a shape",
    .versions = {8, 13},
    .inputs =
        {
            {"input", "T"},
            {"shape", "tensor(int64)"},
        },
    .outputs = {{"output", "T"}},
    .types = {{"T", {{8, kAll}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
