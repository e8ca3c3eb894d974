#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(CastLike) = {
    .name = "CastLike",
    .doc = "converts to the element type of a second tensor",
    .versions = {15, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"input", "T1"},
            {"target_type", "T2"},
        },
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"saturate", 1, {.since = 19}},
            {"round_mode", "up", {.since = 24}},
        },
    .types =
        {
            {"T1",
             {{15, kNumbers | kStr | kBool | kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
            {"T2",
             {{15, kNumbers | kStr | kBool | kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
        },
    .functions =
        {
            {.versions = {.until = 18}, .opset = 15},
            {.versions = {.since = 19, .until = 20}, .opset = 19},
            {.versions = {.since = 21, .until = 22}, .opset = 21},
            {.versions = {.since = 23, .until = 23}, .opset = 23},
            {.versions = {.since = 24, .until = 24}, .opset = 24},
            {.versions = {.since = 25}, .opset = 25},
        },
};

}  // namespace tombolo::ops
