#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(EyeLike) = {
    .name = "EyeLike",
    .doc = "ones on a diagonal, zeros elsewhere",
    .versions = {9, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", Attr::kInt},
            {"k", 0},
        },
    .types =
        {
            {"T1", {{9, kNumbers | kBool}, {22, kBf16}}},
            {"T2", {{9, kNumbers | kBool}, {22, kBf16}}},
        },
};

}  // namespace tombolo::ops
