#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(OneHot) = {
    .name = "OneHot",
    .doc = "a new axis with on at the index and off elsewhere",
    .versions = {9, 11, 28},
    .inputs =
        {
            {"indices", "T1"},
            {"depth", "T2"},
            {"values", "T3"},
        },
    .outputs = {{"output", "T3"}},
    .attributes = {{"axis", -1}},
    .types =
        {
            {"T1", {{9, kNumbers}}},
            {"T2", {{9, kNumbers}}},
            {"T3", {{9, kAll}, {28, kBf16}}},
        },
};

}  // namespace tombolo::ops
