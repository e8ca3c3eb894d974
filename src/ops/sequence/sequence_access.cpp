#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SequenceAt) = {
    .name = "SequenceAt",
    .doc = "the tensor at a position",
    .versions = {11},
    .inputs =
        {
            {"input_sequence", "S"},
            {"position", "I"},
        },
    .outputs = {{"tensor", "T"}},
    .types =
        {
            {"S", {{11, seq_of(kAll)}}},
            {"T", {{11, kAll}}},
            {"I", {{11, kIndices}}},
        },
};

OPERATOR(SequenceLength) = {
    .name = "SequenceLength",
    .doc = "the number of tensors",
    .versions = {11},
    .inputs = {{"input_sequence", "S"}},
    .outputs = {{"length", "I"}},
    .types =
        {
            {"S", {{11, seq_of(kAll)}}},
            {"I", {{11, kI64}}},
        },
};

}  // namespace tombolo::ops
