#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_qlinear_conv(InferContext& context) { return infer_convolution(context, 3); }
}  // namespace

OPERATOR(QLinearConv) = {
    .name = "QLinearConv",
    .doc = "convolution of quantised tensors, quantised again",
    .versions = {10},
    .inputs =
        {
            {"x", "T1"},
            {"x_scale", "tensor(float)"},
            {"x_zero_point", "T1"},
            {"w", "T2"},
            {"w_scale", "tensor(float)"},
            {"w_zero_point", "T2"},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T3"},
            {"B", "T4", kOptional},
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
            {"T3", {{10, kInt8s}}},
            {"T4", {{10, kI32}}},
        },
    .infer = infer_qlinear_conv,
};

}  // namespace tombolo::ops
