#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Concat) = {
    .name = "Concat",
    .doc = "joins tensors along an axis",
    .versions = {1, 4, 11, 13},
    .inputs = {{"inputs", "T", kVariadic}},
    .outputs = {{"concat_result", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 3}},
            {"axis", required(Attr::kInt), {.since = 4}},
        },
    .types = {{"T", {{1, kFloats}, {4, kInts | kComplex | kStr | kBool}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
