#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Relu) = {
    .name = "Relu",
    .doc = "max(x, 0)",
    .versions = {1, 6, 13, 14},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}, {14, kSigned}}}},
    .functions = {{.versions = {.since = 14}, .opset = 18, .text = R"(
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
Y = Max (X, zero)
)"}},
};

}  // namespace tombolo::ops
