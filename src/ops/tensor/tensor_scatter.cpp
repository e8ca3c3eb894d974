#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(TensorScatter) = {
    .name = "TensorScatter",
    .doc = "writes an update into a cache tensor at a position per batch",
    .versions = {24},
    .inputs =
        {
            {"past_cache", "T"},
            {"update", "T"},
            {"write_indices", "tensor(int64)", kOptional},
        },
    .outputs = {{"present_cache", "T"}},
    .attributes =
        {
            {"axis", -2},
            {"mode", "linear"},
        },
    .types = {{"T", {{24, kAll | kFp8 | kInt4 | kBf16 | kFp4 | kE8m0}}}},
    .infer = infer_unary,
};

}  // namespace tombolo::ops
