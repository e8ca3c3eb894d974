#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Scatter) = {
    .name = "Scatter",
    .doc = "old name of ScatterElements",
    .versions = {9, 11},
    .deprecated = {11},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
            {"updates", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 0}},
    .types =
        {
            {"T", {{9, kAll}}},
            {"Tind", {{9, kIndices}}},
        },
    .infer = infer_unary,
};

}  // namespace tombolo::ops
