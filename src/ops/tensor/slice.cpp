#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Slice) = {
    .name = "Slice",
    .doc = "elements start to end by step along chosen axes",
    .versions = {1, 10, 11, 13},
    .inputs =
        {
            {"data", "T"},
            {"starts", "Tind", kSingle, {.since = 10}},
            {"ends", "Tind", kSingle, {.since = 10}},
            {"axes", "Tind", kOptional, {.since = 10}},
            {"steps", "Tind", kOptional, {.since = 10}},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 9}},
            {"ends", required(Attr::kInts), {.until = 9}},
            {"starts", required(Attr::kInts), {.until = 9}},
        },
    .types =
        {
            {"T", {{1, kAll}, {13, kBf16}}},
            {"Tind", {{10, kIndices}}, {.since = 10}},
        },
};

}  // namespace tombolo::ops
