// Matrix products of 8- and 16-bit integers with scales.

#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/matrix_product.h"
#include "ops/kernels/quantize.h"
#include "ops/microsoft/linear.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// product * a_scale * b_scale + bias into output 0; b_scale: one, or one for each column.
Status scaled(KernelContext& context, const Tensor& product, double a_scale, const Tensor& b_scale,
              const Tensor* bias, DType type) {
  const int64_t columns = product.rank() == 0 ? 1 : product.dim(product.rank() - 1);
  if (b_scale.size() != 1 && b_scale.size() != columns)
    return context.error("b_scale must be one or one for each of " + std::to_string(columns) +
                         " columns, is " + to_string(b_scale));
  if (bias != nullptr) CHECK_OK(check_dims(context, "bias", *bias, {{columns}}));
  TRY(Tensor y, context.allocate(DType::kFloat32, product.dims()));
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t column = i % columns;
    double value = static_cast<double>(product.data<int32_t>()[i]) * a_scale *
                   b_scale.get_double(b_scale.size() == 1 ? 0 : column);
    if (bias != nullptr) value += bias->get_double(column);
    y.data<float>()[i] = static_cast<float>(value);
  }
  return give(context, 0, type, std::move(y));
}

Status run_matmul_integer_to_float(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  TRY(const Tensor* a_scale, context.input(2));
  TRY(const Tensor* b_scale, context.input(3));
  TRY(const Tensor* bias, context.optional_input(6));
  if (a->rank() == 0 || b->rank() == 0) return context.error("a scalar is no matrix");
  TRY(const float factor, scalar_scale(context, 2, "a_scale"));
  TRY(const Tensor left, without_zero_point(context, *a, 4, a->rank() < 2 ? 0 : a->rank() - 2));
  TRY(const Tensor right, without_zero_point(context, *b, 5, b->rank() - 1));
  TRY(const Tensor product, matrix_product(context, left, right));
  return scaled(context, product, static_cast<double>(factor), *b_scale, bias, a_scale->dtype());
}

Status run_dynamic_quantize_matmul(KernelContext& context) {
  TRY(const Tensor a, tensor_at(context, 0));
  TRY(const Tensor* b, context.input(1));
  TRY(const Tensor* b_scale, context.input(2));
  TRY(const Tensor* bias, context.optional_input(4));
  if (a.rank() == 0 || b->rank() == 0) return context.error("a scalar is no matrix");
  Official official(context);
  const Tensor inputs[] = {a};
  TRY(const std::vector<RunValue> parts,
      official.run(official.node("DynamicQuantizeLinear", 3), inputs));
  const Tensor& codes = parts[0].tensor();
  const double factor = parts[1].tensor().get_double(0);
  const int64_t zero = parts[2].tensor().get_int64(0);
  TRY(Tensor left, context.allocate(DType::kInt32, codes.dims()));
  for (int64_t i = 0; i < left.size(); ++i)
    left.data<int32_t>()[i] = static_cast<int32_t>(codes.get_int64(i) - zero);
  TRY(const Tensor right, without_zero_point(context, *b, 3, b->rank() - 1));
  TRY(const Tensor product, matrix_product(context, left, right));
  return scaled(context, product, factor, *b_scale, bias, a.dtype());
}

Status infer_matmul_pair(InferContext& context) { return infer_matmul(context, 0, 1); }

Status run_matmul_integer16(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  TRY(const Tensor left, converted(context, *a, DType::kInt32));
  TRY(const Tensor right, converted(context, *b, DType::kInt32));
  TRY(Tensor product, matrix_product(context, left, right));
  const bool is_unsigned = a->dtype() == DType::kUInt16 && b->dtype() == DType::kUInt16;
  context.set_output(0, is_unsigned ? product.reinterpreted(DType::kUInt32) : product);
  return ok();
}
Status infer_matmul_integer16(InferContext& context) {
  CHECK_OK(infer_matmul(context, 0, 1));
  if (context.outputs.empty()) return ok();
  context.outputs[0].kind = Type::Kind::kTensor;
  context.outputs[0].elem = context.elem(0) == DType::kUInt16 && context.elem(1) == DType::kUInt16
                                ? DType::kUInt32
                                : DType::kInt32;
  return ok();
}

/// alpha * a_scale * b_scale * ((a - zero) (b - zero) + C), quantised when y_scale is given.
Status run_qgemm(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(3));
  TRY(const Tensor* b_scale, context.input(4));
  TRY(const Tensor* c, context.optional_input(6));
  TRY(const float a_scale, scalar_scale(context, 1, "a_scale"));
  if (a->rank() != 2 || b->rank() != 2)
    return context.error("A and B must be matrices, are " + to_string(*a) + " and " +
                         to_string(*b));
  const bool swap_a = context.attributes.get_int("transA", 0) != 0;
  const bool swap_b = context.attributes.get_int("transB", 0) != 0;
  TRY(Tensor left, without_zero_point(context, *a, 2, swap_a ? 1 : 0));
  TRY(Tensor right, without_zero_point(context, *b, 5, swap_b ? 0 : 1));
  const std::vector<int64_t> swapped = {1, 0};
  if (swap_a) {
    TRY(left, transposed(context, left, swapped));
  }
  if (swap_b) {
    TRY(right, transposed(context, right, swapped));
  }
  TRY(Tensor product, matrix_product(context, left, right));
  const int64_t columns = product.dim(1);
  if (b_scale->size() != 1 && b_scale->size() != columns)
    return context.error("b_scale must be one or one for each of " + std::to_string(columns) +
                         " columns, is " + to_string(*b_scale));
  Tensor added;
  if (c != nullptr) {
    TRY(const Tensor wide, converted(context, *c, DType::kInt32));
    TRY(added, expanded<int32_t>(context, "C", wide, product.dims()));
  }
  const auto alpha = static_cast<double>(context.attributes.get_float("alpha", 1));
  TRY(Tensor y, context.allocate(DType::kFloat32, product.dims()));
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t sum = int64_t{product.data<int32_t>()[i]} +
                        (absent(added) ? 0 : int64_t{added.data<int32_t>()[i]});
    y.data<float>()[i] =
        static_cast<float>(static_cast<double>(sum) * alpha * static_cast<double>(a_scale) *
                           b_scale->get_double(b_scale->size() == 1 ? 0 : i % columns));
  }
  if (!context.has_input(7)) {
    context.set_output(0, std::move(y));
    return ok();
  }
  TRY(const Tensor* zero, context.input(8));
  return give_linear(context, y, 7, 8, zero->dtype());
}

Status infer_qgemm(InferContext& context) {
  InferType type = InferType::tensor(context.has_input(8) ? context.elem(8) : DType::kFloat32);
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(3);
  if (a != nullptr && b != nullptr) {
    CHECK_OK(expect_rank(context, 0, 2));
    CHECK_OK(expect_rank(context, 3, 2));
    const bool swap_a = context.attributes.get_int("transA", 0) != 0;
    const bool swap_b = context.attributes.get_int("transB", 0) != 0;
    CHECK_OK(unify_dims(context, (*a)[swap_a ? 0 : 1], (*b)[swap_b ? 1 : 0], "A and B"));
    type.shape = SymShape{(*a)[swap_a ? 1 : 0], (*b)[swap_b ? 0 : 1]};
  }
  context.set_output(0, std::move(type));
  return ok();
}

/// (a - zero) * (b - zero), as int32.
Status run_mul_integer(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(2));
  TRY(const int64_t a_zero, scalar_zero_point(context, 1, "A_zero_point", a->dtype()));
  TRY(const int64_t b_zero, scalar_zero_point(context, 3, "B_zero_point", b->dtype()));
  TRY(Tensor left, context.allocate(DType::kInt32, a->dims()));
  TRY(Tensor right, context.allocate(DType::kInt32, b->dims()));
  for (int64_t i = 0; i < left.size(); ++i)
    left.data<int32_t>()[i] = static_cast<int32_t>(a->get_int64(i) - a_zero);
  for (int64_t i = 0; i < right.size(); ++i)
    right.data<int32_t>()[i] = static_cast<int32_t>(b->get_int64(i) - b_zero);
  Official official(context);
  TRY(Tensor y, official.call("Mul", {left, right}));
  context.set_output(0, std::move(y));
  return ok();
}

Status infer_mul_integer(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(2);
  if (a == nullptr || b == nullptr) return ok();
  TRY(SymShape shape, broadcast(*a, *b));
  context.set_tensor(0, DType::kInt32, std::move(shape));
  return ok();
}

/// Sums of 8-bit integers, as 32-bit ones of the same signedness.
Status run_reduce_sum_integer(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const DType type = x->dtype() == DType::kUInt8 ? DType::kUInt32 : DType::kInt32;
  TRY(const Tensor wide, converted(context, *x, type));
  Official official(context);
  TRY(Tensor y, official.call(official.node_with("ReduceSum", {"axes", "keepdims"}), {wide}, 11));
  context.set_output(0, std::move(y));
  return ok();
}

Status infer_reduce_sum_integer(InferContext& context) {
  const InferType* inputs[] = {&context.input(0)};
  InferContext inner{context.node,    11, context.attributes, context.host, inputs, {}, {},
                     context.outputs, {}};
  CHECK_OK(infer_reduce(inner));
  if (context.outputs.empty()) return ok();
  context.outputs[0].kind = Type::Kind::kTensor;
  context.outputs[0].elem = context.elem(0) == DType::kUInt8 ? DType::kUInt32 : DType::kInt32;
  return ok();
}

}  // namespace

OPERATOR(microsoft_MatMulIntegerToFloat) = {
    .name = "MatMulIntegerToFloat",
    .domain = "com.microsoft",
    .doc = "product of 8-bit integers, scaled to floats, plus a bias",
    .versions = {1},
    .inputs =
        {
            {"A", "T1"},
            {"B", "T2"},
            {"a_scale", "T3"},
            {"b_scale", "T3"},
            {"a_zero_point", "T1", kOptional},
            {"b_zero_point", "T2", kOptional},
            {"bias", "T3", kOptional},
        },
    .outputs =
        {
            {"Y", "T3"},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
            {"T3", {{1, kF16 | kF32}}},
        },
    .infer = infer_matmul_pair,
    .reference = run_matmul_integer_to_float,
};

OPERATOR(microsoft_DynamicQuantizeMatMul) = {
    .name = "DynamicQuantizeMatMul",
    .domain = "com.microsoft",
    .doc = "quantises A to 8 bits on the fly, then as MatMulIntegerToFloat",
    .versions = {1},
    .inputs =
        {
            {"A", "T1"},
            {"B", "T2"},
            {"b_scale", "T1"},
            {"b_zero_point", "T2", kOptional},
            {"bias", "T1", kOptional},
        },
    .outputs =
        {
            {"Y", "T1"},
        },
    .types =
        {
            {"T1", {{1, kF32}}},
            {"T2", {{1, kInt8s}}},
        },
    .infer = infer_matmul_pair,
    .reference = run_dynamic_quantize_matmul,
};

OPERATOR(microsoft_MatMulInteger16) = {
    .name = "MatMulInteger16",
    .domain = "com.microsoft",
    .doc = "product of 16-bit integers",
    .versions = {1},
    .inputs =
        {
            {"A", "T1"},
            {"B", "T2"},
        },
    .outputs =
        {
            {"Y", "T3"},
        },
    .types =
        {
            {"T1", {{1, kInt16s}}},
            {"T2", {{1, kInt16s}}},
            {"T3", {{1, kI32 | kU32}}},
        },
    .infer = infer_matmul_integer16,
    .reference = run_matmul_integer16,
};

OPERATOR(microsoft_QGemm) = {
    .name = "QGemm",
    .domain = "com.microsoft",
    .doc = "Gemm of 8-bit integers with scales",
    .versions = {1},
    .inputs =
        {
            {"A", "TA"},
            {"a_scale", "T"},
            {"a_zero_point", "TA"},
            {"B", "TB"},
            {"b_scale", "T"},
            {"b_zero_point", "TB"},
            {"C", "TC", kOptional},
            {"y_scale", "T", kOptional},
            {"y_zero_point", "TYZ", kOptional},
        },
    .outputs =
        {
            {"Y", "TY"},
        },
    .attributes =
        {
            {"alpha", 1.0f},
            {"transA", 0},
            {"transB", 0},
        },
    .types =
        {
            {"T", {{1, kF32}}},
            {"TA", {{1, kInt8s}}},
            {"TB", {{1, kInt8s}}},
            {"TC", {{1, kI32}}},
            {"TYZ", {{1, kInt8s}}},
            {"TY", {{1, kInt8s | kF32}}},
        },
    .infer = infer_qgemm,
    .reference = run_qgemm,
};

OPERATOR(microsoft_MulInteger) = {
    .name = "MulInteger",
    .domain = "com.microsoft",
    .doc = "(a - zero) * (b - zero) of 8-bit integers",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"A_zero_point", "T", kOptional},
            {"B", "T"},
            {"B_zero_point", "T", kOptional},
        },
    .outputs =
        {
            {"C", "T1"},
        },
    .types =
        {
            {"T", {{1, kInt8s}}},
            {"T1", {{1, kI32}}},
        },
    .infer = infer_mul_integer,
    .reference = run_mul_integer,
};

OPERATOR(microsoft_ReduceSumInteger) = {
    .name = "ReduceSumInteger",
    .domain = "com.microsoft",
    .doc = "sums of 8-bit integers",
    .versions = {1},
    .inputs =
        {
            {"data", "T1"},
        },
    .outputs =
        {
            {"reduced", "T2"},
        },
    .attributes =
        {
            {"axes", required(Attr::kInts)},
            {"keepdims", required(Attr::kInt)},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kI32 | kU32}}},
        },
    .infer = infer_reduce_sum_integer,
    .reference = run_reduce_sum_integer,
};

}  // namespace tombolo::ops
