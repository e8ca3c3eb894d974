#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(FlexAttention) = {
    .name = "FlexAttention",
    .domain = "ai.onnx.preview",
    .doc = "attention whose scores a subgraph may change",
    .versions = {1},
    .inputs =
        {
            {"Q", "T1"},
            {"K", "T1"},
            {"V", "T1"},
        },
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"prob_mod", Attr::kGraph},
            {"scale", Attr::kFloat},
            {"score_mod", Attr::kGraph},
            {"softmax_precision", Attr::kInt},
        },
    .types = {{"T1", {{1, kFloats | kBf16}}}},
    .functions = {{.opset = 1}},
    .determinism = Determinism::kBySubgraph,
};

}  // namespace tombolo::ops
