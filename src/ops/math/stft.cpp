#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(STFT) = {
    .name = "STFT",
    .doc = "Fourier transform of overlapping windowed frames",
    .versions = {17},
    .inputs =
        {
            {"signal", "T1"},
            {"frame_step", "T2"},
            {"window", "T1", kOptional},
            {"frame_length", "T2", kOptional},
        },
    .outputs = {{"output", "T1"}},
    .attributes = {{"onesided", 1}},
    .types =
        {
            {"T1", {{17, kFloats | kBf16}}},
            {"T2", {{17, kIndices}}},
        },
};

}  // namespace tombolo::ops
