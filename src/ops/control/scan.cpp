#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Scan) = {
    .name = "Scan",
    .doc = "runs a subgraph over the slices of its inputs, carrying states",
    .versions = {8, 9, 11, 16, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"sequence_lens", "I", kOptional, {.until = 8}},
            {"initial_state_and_scan_inputs", "V", kVariadic, {}, 1, kMixed},
        },
    .outputs = {{"final_state_and_scan_outputs", "V", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"body", required(Attr::kGraph)},
            {"directions", Attr::kInts, {.until = 8}},
            {"num_scan_inputs", required(Attr::kInt)},
            {"scan_input_axes", Attr::kInts, {.since = 9}},
            {"scan_input_directions", Attr::kInts, {.since = 9}},
            {"scan_output_axes", Attr::kInts, {.since = 9}},
            {"scan_output_directions", Attr::kInts, {.since = 9}},
        },
    .types =
        {
            {"I", {{8, kI64}}, {.until = 8}},
            {"V",
             {{8, kAll},
              {16, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
        },
    .determinism = Determinism::kBySubgraph,
};

}  // namespace tombolo::ops
