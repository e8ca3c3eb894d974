#include "ops/schema.h"

namespace tombolo::ops {

constexpr std::initializer_list<Literal> kRNNActivations = {"Tanh", "Tanh"};

OPERATOR(RNN) = {
    .name = "RNN",
    .doc = "simple recurrent layer",
    .versions = {1, 7, 14, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"R", "T"},
            {"B", "T", kOptional},
            {"sequence_lens", "T1", kOptional},
            {"initial_h", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T", kOptional},
            {"Y_h", "T", kOptional},
        },
    .attributes =
        {
            {"activation_alpha", Attr::kFloats},
            {"activation_beta", Attr::kFloats},
            {"activations", &kRNNActivations},
            {"clip", Attr::kFloat},
            {"direction", "forward"},
            {"hidden_size", Attr::kInt},
            {"output_sequence", 0, {.until = 6}},
            {"layout", 0, {.since = 14}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {22, kBf16}}},
            {"T1", {{1, kI32}}},
        },
};

}  // namespace tombolo::ops
