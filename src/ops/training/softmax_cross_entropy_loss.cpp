#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SoftmaxCrossEntropyLoss) = {
    .name = "SoftmaxCrossEntropyLoss",
    .doc = "negative log likelihood of log softmax",
    .versions = {12, 13},
    .inputs =
        {
            {"scores", "T"},
            {"labels", "Tind"},
            {"weights", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"log_prob", "T", kOptional},
        },
    .attributes =
        {
            {"ignore_index", Attr::kInt},
            {"reduction", "mean"},
        },
    .types =
        {
            {"T", {{12, kFloats}, {13, kBf16}}},
            {"Tind", {{12, kIndices}}},
        },
    .functions =
        {
            {.versions = {.until = 12}, .opset = 12},
            {.versions = {.since = 13}, .opset = 13},
        },
};

}  // namespace tombolo::ops
