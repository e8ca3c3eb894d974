#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SequenceConstruct) = {
    .name = "SequenceConstruct",
    .doc = "a sequence of the given tensors",
    .versions = {11},
    .inputs = {{"inputs", "T", kVariadic}},
    .outputs = {{"output_sequence", "S"}},
    .types =
        {
            {"T", {{11, kAll}}},
            {"S", {{11, seq_of(kAll)}}},
        },
};

OPERATOR(SequenceEmpty) = {
    .name = "SequenceEmpty",
    .doc = "a sequence without tensors",
    .versions = {11},
    .outputs = {{"output", "S"}},
    .attributes = {{"dtype", Attr::kInt}},
    .types = {{"S", {{11, seq_of(kAll)}}}},
};

}  // namespace tombolo::ops
