#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(IsInf) = {
    .name = "IsInf",
    .doc = "which elements are infinite, by sign on request",
    .versions = {10, 20},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"detect_negative", 1},
            {"detect_positive", 1},
        },
    .types =
        {
            {"T1", {{10, kFloats32}, {20, kFp8 | kF16 | kBf16}}},
            {"T2", {{10, kBool}}},
        },
};

}  // namespace tombolo::ops
