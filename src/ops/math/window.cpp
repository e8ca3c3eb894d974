#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(HannWindow) = {
    .name = "HannWindow",
    .doc = "Hann window of the given length",
    .versions = {17},
    .inputs = {{"size", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"output_datatype", 1},
            {"periodic", 1},
        },
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kNumbers | kBf16}}},
        },
    .functions = {{.opset = 17}},
};

OPERATOR(HammingWindow) = {
    .name = "HammingWindow",
    .doc = "Hamming window of the given length",
    .versions = {17},
    .inputs = {{"size", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"output_datatype", 1},
            {"periodic", 1},
        },
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kNumbers | kBf16}}},
        },
    .functions = {{.opset = 17}},
};

OPERATOR(BlackmanWindow) = {
    .name = "BlackmanWindow",
    .doc = "Blackman window of the given length",
    .versions = {17},
    .inputs = {{"size", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"output_datatype", 1},
            {"periodic", 1},
        },
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kNumbers | kBf16}}},
        },
    .functions = {{.opset = 17}},
};

}  // namespace tombolo::ops
