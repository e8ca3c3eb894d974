#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Pad) = {
    .name = "Pad",
    .doc = "adds (or, with negative pads, removes) elements at the borders",
    .versions = {1, 2, 11, 13, 18, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"data", "T"},
            {"pads", "tensor(int64)", kSingle, {.since = 11}},
            {"constant_value", "T", kOptional, {.since = 11}},
            {"axes", "Tind", kOptional, {.since = 18}},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"mode", "constant"},
            {"paddings", required(Attr::kInts), {.until = 1}},
            {"value", 0.0f, {.until = 10}},
            {"pads", required(Attr::kInts), {.since = 2, .until = 10}},
        },
    .types =
        {
            {"T",
             {{1, kFloats},
              {11, kInts},
              {13, kComplex | kStr | kBool | kBf16},
              {21, kFp8 | kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
            {"Tind", {{18, kIndices}}, {.since = 18}},
        },
};

}  // namespace tombolo::ops
