#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(CumSum) = {
    .name = "CumSum",
    .doc = "running sum along an axis",
    .versions = {11, 14},
    .inputs =
        {
            {"x", "T"},
            {"axis", "T2"},
        },
    .outputs = {{"y", "T"}},
    .attributes =
        {
            {"exclusive", 0},
            {"reverse", 0},
        },
    .types =
        {
            {"T", {{11, kInt32s | kFloats32}, {14, kF16 | kBf16}}},
            {"T2", {{11, kIndices}}},
        },
};

OPERATOR(CumProd) = {
    .name = "CumProd",
    .doc = "running product along an axis",
    .versions = {26},
    .inputs =
        {
            {"x", "T"},
            {"axis", "T2"},
        },
    .outputs = {{"y", "T"}},
    .attributes =
        {
            {"exclusive", 0},
            {"reverse", 0},
        },
    .types =
        {
            {"T", {{26, kInt32s | kFloats | kBf16}}},
            {"T2", {{26, kIndices}}},
        },
};

}  // namespace tombolo::ops
