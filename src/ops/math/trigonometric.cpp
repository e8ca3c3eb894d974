#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Sin) = {
    .name = "Sin",
    .doc = "sine of x in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
};

OPERATOR(Cos) = {
    .name = "Cos",
    .doc = "cosine of x in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
};

OPERATOR(Tan) = {
    .name = "Tan",
    .doc = "tangent of x in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
};

OPERATOR(Asin) = {
    .name = "Asin",
    .doc = "inverse sine, in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
};

OPERATOR(Acos) = {
    .name = "Acos",
    .doc = "inverse cosine, in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
};

OPERATOR(Atan) = {
    .name = "Atan",
    .doc = "inverse tangent, in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
