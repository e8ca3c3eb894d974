#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(DFT) = {
    .name = "DFT",
    .doc = "discrete Fourier transform along one axis, or its inverse",
    .versions = {17, 20},
    .inputs =
        {
            {"input", "T1"},
            {"dft_length", "T2", kOptional},
            {"axis", "tensor(int64)", kOptional, {.since = 20}},
        },
    .outputs = {{"output", "T1"}},
    .attributes =
        {
            {"axis", 1, {.until = 19}},
            {"inverse", 0},
            {"onesided", 0},
        },
    .types =
        {
            {"T1", {{17, kFloats | kBf16}}},
            {"T2", {{17, kIndices}}},
        },
};

}  // namespace tombolo::ops
