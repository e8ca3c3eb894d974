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
            {.versions = {.since = 13}, .opset = 18, .text = R"(
axes = Constant <value_ints: ints = @axes> ()
mean = ReduceMean (X, axes)
centred = Sub (X, mean)
square = Mul (centred, centred)
variance = ReduceMean (square, axes)
deviation = Sqrt (variance)
least_f = Constant <value = float {1e-9}> ()
least = CastLike (least_f, X)
divisor = Add (deviation, least)
Y = Div (centred, divisor)
)"},
        },
};

}  // namespace tombolo::ops
