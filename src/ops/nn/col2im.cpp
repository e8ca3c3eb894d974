#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Col2Im) = {
    .name = "Col2Im",
    .doc = "sums sliding blocks back into an image",
    .versions = {18},
    .inputs =
        {
            {"input", "T"},
            {"image_shape", "tensor(int64)"},
            {"block_shape", "tensor(int64)"},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"dilations", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{18, kAll | kBf16}}}},
};

}  // namespace tombolo::ops
