#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Loop) = {
    .name = "Loop",
    .doc = "repeats a subgraph by count and condition, carrying values",
    .versions = {1, 11, 13, 16, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"M", "I", kOptional},
            {"cond", "B", kOptional},
            {"v_initial", "V", kVariadic, {.until = 10}, 1, kMixed},
            {"v_initial", "V", kVariadic, {.since = 11}, 0, kMixed},
        },
    .outputs = {{"v_final_and_scan_outputs", "V", kVariadic, {}, 1, kMixed}},
    .attributes = {{"body", required(Attr::kGraph)}},
    .types =
        {
            {"V",
             {{1, kAll},
              {13, seq_of(kAll)},
              {16, kBf16 | seq_of(kBf16) | optional_of(kAll | kBf16 | seq_of(kAll | kBf16))},
              {19, kFp8 | seq_of(kFp8) | optional_of(kFp8)},
              {21, kInt4 | seq_of(kInt4) | optional_of(kInt4)},
              {23, kFp4 | seq_of(kFp4) | optional_of(kFp4)},
              {24, kE8m0 | seq_of(kE8m0) | optional_of(kE8m0)},
              {25, kInt2 | seq_of(kInt2) | optional_of(kInt2)}}},
            {"I", {{1, kI64}}},
            {"B", {{1, kBool}}},
        },
    .determinism = Determinism::kBySubgraph,
};

}  // namespace tombolo::ops
