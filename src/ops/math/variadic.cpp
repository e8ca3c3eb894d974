#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Max) = {
    .name = "Max",
    .doc = "element-wise maximum of any number of tensors",
    .versions = {1, 6, 8, 12, 13},
    .inputs = {{"data_0", "T", kVariadic}},
    .outputs = {{"max", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {12, kInts}, {13, kBf16}}}},
};

OPERATOR(Min) = {
    .name = "Min",
    .doc = "element-wise minimum of any number of tensors",
    .versions = {1, 6, 8, 12, 13},
    .inputs = {{"data_0", "T", kVariadic}},
    .outputs = {{"min", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {12, kInts}, {13, kBf16}}}},
};

OPERATOR(Sum) = {
    .name = "Sum",
    .doc = "element-wise sum of any number of tensors",
    .versions = {1, 6, 8, 13},
    .inputs = {{"data_0", "T", kVariadic}},
    .outputs = {{"sum", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

OPERATOR(Mean) = {
    .name = "Mean",
    .doc = "element-wise mean of any number of tensors",
    .versions = {1, 6, 8, 13},
    .inputs = {{"data_0", "T", kVariadic}},
    .outputs = {{"mean", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
