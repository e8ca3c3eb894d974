#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(NegativeLogLikelihoodLoss) = {
    .name = "NegativeLogLikelihoodLoss",
    .doc = "minus the score of the target class, weighted and reduced",
    .versions = {12, 13, 22},
    .inputs =
        {
            {"input", "T"},
            {"target", "Tind"},
            {"weight", "T", kOptional},
        },
    .outputs = {{"loss", "T"}},
    .attributes =
        {
            {"ignore_index", Attr::kInt},
            {"reduction", "mean"},
        },
    .types =
        {
            {"T", {{12, kFloats}, {22, kBf16}}},
            {"Tind", {{12, kIndices}}},
        },
    .functions =
        {
            {.versions = {.until = 12}, .opset = 12},
            {.versions = {.since = 13, .until = 21}, .opset = 13},
            {.versions = {.since = 22}, .opset = 22},
        },
};

}  // namespace tombolo::ops
