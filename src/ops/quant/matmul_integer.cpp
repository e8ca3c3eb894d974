#include "ops/infer_helpers.h"
#include "ops/kernels/matrix_product.h"
#include "ops/kernels/quantize.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_matmul_integer(InferContext& context) { return infer_matmul(context, 0, 1); }
}  // namespace

namespace {

Status run_matmul_integer(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  if (a->rank() == 0 || b->rank() == 0)
    return context.error("A and B must be matrices, are " + to_string(*a) + " and " +
                         to_string(*b));
  // Zero points go by row of A and by column of B.
  TRY(Tensor left, without_zero_point(context, *a, 2, a->rank() < 2 ? 0 : a->rank() - 2));
  TRY(Tensor right, without_zero_point(context, *b, 3, b->rank() - 1));
  TRY(Tensor y, matrix_product(context, left, right));
  context.set_output(0, RunValue(std::move(y)));
  return ok();
}

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
    .reference = run_matmul_integer,
};

}  // namespace tombolo::ops
