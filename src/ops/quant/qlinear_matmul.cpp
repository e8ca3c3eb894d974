#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_qlinear_matmul(InferContext& context) { return infer_matmul(context, 0, 3); }
}  // namespace

OPERATOR(QLinearMatMul) = {
    .name = "QLinearMatMul",
    .doc = "matrix product of quantised tensors, quantised again",
    .versions = {10, 21},
    .inputs =
        {
            {"a", "T1"},
            {"a_scale", "tensor(float)", kSingle, {.until = 20}},
            {"a_scale", "TS", kSingle, {.since = 21}},
            {"a_zero_point", "T1"},
            {"b", "T2"},
            {"b_scale", "tensor(float)", kSingle, {.until = 20}},
            {"b_scale", "TS", kSingle, {.since = 21}},
            {"b_zero_point", "T2"},
            {"y_scale", "tensor(float)", kSingle, {.until = 20}},
            {"y_scale", "TS", kSingle, {.since = 21}},
            {"y_zero_point", "T3"},
        },
    .outputs = {{"y", "T3"}},
    .types =
        {
            {"T1", {{10, kInt8s}, {21, kFp8}}},
            {"T2", {{10, kInt8s}, {21, kFp8}}},
            {"T3", {{10, kInt8s}, {21, kFp8}}},
            {"TS", {{21, kF32 | kF16 | kBf16}}, {.since = 21}},
        },
    .infer = infer_qlinear_matmul,
};

}  // namespace tombolo::ops
