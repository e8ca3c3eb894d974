#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_matmul_integer(InferContext& context) { return infer_matmul(context, 0, 1); }
}  // namespace

OPERATOR(MatMulInteger) = {
    .name = "MatMulInteger",
    .doc = "matrix product of 8-bit integers in int32",
    .versions = {10},
    .inputs =
        {
            {"A", "T1"},
            {"B", "T2"},
            {"a_zero_point", "T1", kOptional},
            {"b_zero_point", "T2", kOptional},
        },
    .outputs = {{"Y", "T3"}},
    .types =
        {
            {"T1", {{10, kInt8s}}},
            {"T2", {{10, kInt8s}}},
            {"T3", {{10, kI32}}},
        },
    .infer = infer_matmul_integer,
};

}  // namespace tombolo::ops
