#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Compress) = {
    .name = "Compress",
    .doc = "keeps the slices whose flag is set",
    .versions = {9, 11, 28},
    .inputs =
        {
            {"input", "T"},
            {"condition", "T1"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", Attr::kInt}},
    .types =
        {
            {"T", {{9, kAll}, {28, kBf16}}},
            {"T1", {{9, kBool}}},
        },
};

}  // namespace tombolo::ops
