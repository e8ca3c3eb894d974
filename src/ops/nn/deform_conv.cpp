#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_deform_conv(InferContext& context) { return infer_convolution(context, 1); }
}  // namespace

OPERATOR(DeformConv) = {
    .name = "DeformConv",
    .doc = "convolution whose taps are moved by learned offsets",
    .versions = {19, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"offset", "T"},
            {"B", "T", kOptional},
            {"mask", "T", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"offset_group", 1},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{19, kFloats}, {22, kBf16}}}},
    .infer = infer_deform_conv,
};

}  // namespace tombolo::ops
