#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_conv_integer(InferContext& context) { return infer_convolution(context, 1); }
}  // namespace

OPERATOR(ConvInteger) = {
    .name = "ConvInteger",
    .doc = "convolution of 8-bit integers in int32",
    .versions = {10},
    .inputs =
        {
            {"x", "T1"},
            {"w", "T2"},
            {"x_zero_point", "T1", kOptional},
            {"w_zero_point", "T2", kOptional},
        },
    .outputs = {{"y", "T3"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T1", {{10, kInt8s}}},
            {"T2", {{10, kInt8s}}},
            {"T3", {{10, kI32}}},
        },
    .infer = infer_conv_integer,
};

}  // namespace tombolo::ops
