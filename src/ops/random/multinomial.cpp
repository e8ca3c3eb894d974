#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Multinomial) = {
    .name = "Multinomial",
    .doc = "draws classes by unnormalised log-probabilities",
    .versions = {7, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", 6},
            {"sample_size", 1},
            {"seed", Attr::kFloat},
        },
    .types =
        {
            {"T1", {{7, kFloats}, {22, kBf16}}},
            {"T2", {{7, kIndices}}},
        },
    .determinism = Determinism::kRandom,
};

}  // namespace tombolo::ops
