#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Sinh) = {
    .name = "Sinh",
    .doc = "hyperbolic sine",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
};

OPERATOR(Cosh) = {
    .name = "Cosh",
    .doc = "hyperbolic cosine",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
};

OPERATOR(Tanh) = {
    .name = "Tanh",
    .doc = "hyperbolic tangent",
    .versions = {1, 6, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

OPERATOR(Asinh) = {
    .name = "Asinh",
    .doc = "inverse hyperbolic sine",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
};

OPERATOR(Acosh) = {
    .name = "Acosh",
    .doc = "inverse hyperbolic cosine",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
};

OPERATOR(Atanh) = {
    .name = "Atanh",
    .doc = "inverse hyperbolic tangent",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
