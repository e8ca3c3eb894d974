#include "ops/schema.h"

namespace tombolo::ops {

constexpr std::initializer_list<int64_t> kMeanVarianceNormalizationAxes = {0, 2, 3};

OPERATOR(MeanVarianceNormalization) = {
    .name = "MeanVarianceNormalization",
    .doc = "(x - mean) / standard deviation over the given axes",
    .versions = {9, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"axes", &kMeanVarianceNormalizationAxes}},
    .types = {{"T", {{9, kFloats}, {13, kBf16}}}},
    .functions =
        {
            {.versions = {.until = 12}, .opset = 9},
            {.versions = {.since = 13}, .opset = 13},
            {.versions = {.since = 13}, .opset = 18},
        },
};

}  // namespace tombolo::ops
