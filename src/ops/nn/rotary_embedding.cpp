#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(RotaryEmbedding) = {
    .name = "RotaryEmbedding",
    .doc = "rotates pairs of features by an angle that grows with the position",
    .versions = {23},
    .inputs =
        {
            {"X", "T"},
            {"cos_cache", "T"},
            {"sin_cache", "T"},
            {"position_ids", "M", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"interleaved", 0},
            {"num_heads", Attr::kInt},
            {"rotary_embedding_dim", 0},
        },
    .types =
        {
            {"T", {{23, kF32 | kF16 | kBf16}}},
            {"M", {{23, kI64}}},
        },
    .functions = {{.opset = 23}},
};

}  // namespace tombolo::ops
