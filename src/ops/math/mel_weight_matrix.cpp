#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(MelWeightMatrix) = {
    .name = "MelWeightMatrix",
    .doc = "matrix that maps spectrogram bins to mel bins",
    .versions = {17},
    .inputs =
        {
            {"num_mel_bins", "T1"},
            {"dft_length", "T1"},
            {"sample_rate", "T1"},
            {"lower_edge_hertz", "T2"},
            {"upper_edge_hertz", "T2"},
        },
    .outputs = {{"output", "T3"}},
    .attributes = {{"output_datatype", 1}},
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kFloats | kBf16}}},
            {"T3", {{17, kNumbers | kBf16}}},
        },
};

}  // namespace tombolo::ops
