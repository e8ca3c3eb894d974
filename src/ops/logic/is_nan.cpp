#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(IsNaN) = {
    .name = "IsNaN",
    .doc = "which elements are NaN",
    .versions = {9, 13, 20},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .types =
        {
            {"T1", {{9, kFloats}, {13, kBf16}, {20, kFp8}}},
            {"T2", {{9, kBool}}},
        },
};

}  // namespace tombolo::ops
