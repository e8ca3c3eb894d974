#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Softmax) = {
    .name = "Softmax",
    .doc = "e^x divided by its sum along an axis",
    .versions = {1, 11, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", 1, {.until = 12}},
            {"axis", -1, {.since = 13}},
        },
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .functions =
        {
            {.versions = {.since = 13}, .opset = 13},
            {.versions = {.since = 13}, .opset = 18},
        },
};

OPERATOR(LogSoftmax) = {
    .name = "LogSoftmax",
    .doc = "logarithm of softmax along an axis",
    .versions = {1, 11, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", 1, {.until = 12}},
            {"axis", -1, {.since = 13}},
        },
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .functions =
        {
            {.versions = {.since = 13}, .opset = 13},
            {.versions = {.since = 13}, .opset = 18},
        },
};

OPERATOR(Hardmax) = {
    .name = "Hardmax",
    .doc = "1 at the first maximum along an axis, else 0",
    .versions = {1, 11, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", 1, {.until = 12}},
            {"axis", -1, {.since = 13}},
        },
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
