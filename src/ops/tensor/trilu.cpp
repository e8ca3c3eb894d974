#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Trilu) = {
    .name = "Trilu",
    .doc = "the upper or lower triangle, zeros elsewhere",
    .versions = {14},
    .inputs =
        {
            {"input", "T"},
            {"k", "tensor(int64)", kOptional},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"upper", 1}},
    .types = {{"T", {{14, kAll | kBf16}}}},
    .infer = infer_unary,
};

}  // namespace tombolo::ops
