#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_matmul_inputs(InferContext& context) { return infer_matmul(context, 0, 1); }
}  // namespace

OPERATOR(MatMul) = {
    .name = "MatMul",
    .doc = "matrix product of the last two axes; the others broadcast",
    .versions = {1, 9, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats}, {9, kInt32s}, {13, kBf16}}}},
    .infer = infer_matmul_inputs,
};

}  // namespace tombolo::ops
