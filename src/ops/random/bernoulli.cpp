#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Bernoulli) = {
    .name = "Bernoulli",
    .doc = "1 with the probability given by each element, else 0",
    .versions = {15, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", Attr::kInt},
            {"seed", Attr::kFloat},
        },
    .types =
        {
            {"T1", {{15, kFloats}, {22, kBf16}}},
            {"T2", {{15, kNumbers | kBool | kBf16}}},
        },
    .functions =
        {
            {.versions = {.until = 21}, .opset = 15},
            {.versions = {.since = 22}, .opset = 22},
        },
    .determinism = Determinism::kRandom,
};

}  // namespace tombolo::ops
