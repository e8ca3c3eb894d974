#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ReverseSequence) = {
    .name = "ReverseSequence",
    .doc = "reverses the first n elements of each sequence of a batch",
    .versions = {10, 28},
    .inputs =
        {
            {"input", "T"},
            {"sequence_lens", "tensor(int64)"},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"batch_axis", 1},
            {"time_axis", 0},
        },
    .types = {{"T", {{10, kAll}, {28, kBf16}}}},
    .infer = infer_unary,
};

}  // namespace tombolo::ops
