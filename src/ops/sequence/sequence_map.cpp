#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SequenceMap) = {
    .name = "SequenceMap",
    .doc = "applies a subgraph to each element of sequences",
    .versions = {17},
    .inputs =
        {
            {"input_sequence", "S"},
            {"additional_inputs", "V", kVariadic, {}, 0, kMixed},
        },
    .outputs = {{"out_sequence", "S", kVariadic, {}, 1, kMixed}},
    .attributes = {{"body", required(Attr::kGraph)}},
    .types =
        {
            {"S", {{17, seq_of(kAll)}}},
            {"V", {{17, kAll | seq_of(kAll)}}},
        },
    .functions = {{.opset = 17}},
    .determinism = Determinism::kBySubgraph,
};

}  // namespace tombolo::ops
