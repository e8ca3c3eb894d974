#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SequenceInsert) = {
    .name = "SequenceInsert",
    .doc = "a copy with a tensor inserted",
    .versions = {11},
    .inputs =
        {
            {"input_sequence", "S"},
            {"tensor", "T"},
            {"position", "I", kOptional},
        },
    .outputs = {{"output_sequence", "S"}},
    .types =
        {
            {"T", {{11, kAll}}},
            {"S", {{11, seq_of(kAll)}}},
            {"I", {{11, kIndices}}},
        },
};

OPERATOR(SequenceErase) = {
    .name = "SequenceErase",
    .doc = "a copy with a tensor removed",
    .versions = {11},
    .inputs =
        {
            {"input_sequence", "S"},
            {"position", "I", kOptional},
        },
    .outputs = {{"output_sequence", "S"}},
    .types =
        {
            {"S", {{11, seq_of(kAll)}}},
            {"I", {{11, kIndices}}},
        },
};

}  // namespace tombolo::ops
