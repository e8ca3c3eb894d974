#include "ops/kernels/gemm.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_gemm(InferContext& context) {
  CHECK_OK(expect_rank(context, 0, 2));
  CHECK_OK(expect_rank(context, 1, 2));
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  const bool trans_a = context.attributes.get_int("transA", 0) != 0;
  const bool trans_b = context.attributes.get_int("transB", 0) != 0;
  SymShape out(2);
  if (a != nullptr) out[0] = (*a)[trans_a ? 1 : 0];
  if (b != nullptr) out[1] = (*b)[trans_b ? 0 : 1];
  if (a != nullptr && b != nullptr)
    CHECK_OK(unify_dims(context, (*a)[trans_a ? 0 : 1], (*b)[trans_b ? 1 : 0],
                        "columns of A against rows of B"));
  if (const SymShape* c = context.shape(2); c != nullptr && context.opset >= 7) {
    const auto sum = broadcast(out, *c);
    if (!sum) return sum.error();
    if (sum->size() != 2 ||
        (out[0].is_value() && sum->front().is_value() && out[0].value() != sum->front().value()) ||
        (out[1].is_value() && sum->back().is_value() && out[1].value() != sum->back().value()))
      return context.error("C of shape " + shape_to_string(*c) + " does not broadcast to " +
                           shape_to_string(out));
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
/// factor * x; integers truncate.
template <typename Number>
Number scaled(float factor, Number x) {
  if (factor == 1) return x;
  if constexpr (std::is_floating_point_v<Number>) return static_cast<Number>(factor) * x;
  return static_cast<Number>(to_integer<int64_t>(factor * static_cast<double>(x)));
}

/// T computes, Number is what it means: signed integers multiply as unsigned ones.
template <typename T, typename Number>
Status gemm_as(KernelContext& context, const Tensor& a, const Tensor& b, const Tensor* c, int64_t m,
               int64_t n, int64_t k) {
  const bool trans_a = context.attributes.get_int("transA", 0) != 0;
  const bool trans_b = context.attributes.get_int("transB", 0) != 0;
  const float alpha = context.attributes.get_float("alpha", 1);
  const float beta = context.attributes.get_float("beta", 1);
  TRY(const Tensor x, as<Number>(context, a));
  TRY(const Tensor y, as<Number>(context, b));
  const int64_t dims[] = {m, n};
  TRY(Tensor out, context.allocate(dtype_of<Number>(), dims));
  parallel_gemm<T>(context, m, n, k, {x.data<T>(), trans_a ? 1 : k, trans_a ? m : 1},
                   {y.data<T>(), trans_b ? 1 : n, trans_b ? k : 1}, out.data<T>(), n);
  Number* to = out.data<Number>();
  for (int64_t i = 0; alpha != 1 && i < m * n; ++i) to[i] = scaled(alpha, to[i]);
  if (c != nullptr) {
    TRY(const Tensor z, as<Number>(context, *c));
    const Tensor* const added[] = {&z};
    TRY(const Broadcast rows, Broadcast::to(dims, added));
    for (BroadcastCursor at(rows, 0, rows.count); !at.done();) {
      const int64_t count = at.run(INT64_MAX);
      const Number* from = z.data<Number>() + at.offset(0);
      T* sum = out.data<T>() + at.at();
      for (int64_t i = 0; i < count; ++i)
        sum[i] += static_cast<T>(scaled(beta, from[i * rows.steps[0]]));
      at.advance(count);
    }
  }
  return give(context, 0, a.dtype(), std::move(out));
}

Status run_gemm(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  TRY(const Tensor* c, context.optional_input(2));
  const bool trans_a = context.attributes.get_int("transA", 0) != 0;
  const bool trans_b = context.attributes.get_int("transB", 0) != 0;
  if (a->rank() != 2 || b->rank() != 2 || b->dtype() != a->dtype() ||
      (c != nullptr && c->dtype() != a->dtype()))
    return context.error("A " + to_string(*a) + " and B " + to_string(*b) +
                         (c != nullptr ? " and C " + to_string(*c) : "") +
                         " must be matrices of one type");
  const int64_t m = a->dim(trans_a ? 1 : 0), k = a->dim(trans_a ? 0 : 1);
  const int64_t n = b->dim(trans_b ? 0 : 1), depth = b->dim(trans_b ? 1 : 0);
  if (k != depth)
    return context.error("A " + to_string(*a) + " and B " + to_string(*b) + " do not multiply: " +
                         std::to_string(k) + " columns against " + std::to_string(depth) + " rows");
  switch (a->dtype()) {
    case DType::kFloat64:
      return gemm_as<double, double>(context, *a, *b, c, m, n, k);
    case DType::kInt32:
      return gemm_as<uint32_t, int32_t>(context, *a, *b, c, m, n, k);
    case DType::kUInt32:
      return gemm_as<uint32_t, uint32_t>(context, *a, *b, c, m, n, k);
    case DType::kInt64:
      return gemm_as<uint64_t, int64_t>(context, *a, *b, c, m, n, k);
    case DType::kUInt64:
      return gemm_as<uint64_t, uint64_t>(context, *a, *b, c, m, n, k);
    default:
      if (!is_float(a->dtype())) return unsupported("a product of " + to_string(*a));
      return gemm_as<float, float>(context, *a, *b, c, m, n, k);
  }
}

}  // namespace

namespace {

/// C broadcasts by itself: its shape matches the end of (M, N).
Status step_drop_broadcast(StepContext& step) {
  step.node.remove_attribute("broadcast");
  return ok();
}

}  // namespace

namespace {

/// C had to be given.
Status step_zero_addend(StepContext& step) {
  if (step.has_input(2)) return ok();
  const DType dtype = step.dtype(0);
  if (dtype == DType::kUndefined) return step.cannot("the type of A is not known");
  TRY(Value * zero, step.scalar(dtype, 0, "zero"));
  step.node.set_input(2, zero);
  return ok();
}

}  // namespace

OPERATOR(Gemm) = {
    .name = "Gemm",
    .doc = "alpha * A' * B' + beta * C, with A and B transposed on request",
    .versions = {1, 6, 7, 9, 11, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
            {"C", "T", kSingle, {.until = 10}},
            {"C", "T", kOptional, {.since = 11}},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 1.0f},
            {"beta", 1.0f},
            {"broadcast", 0, {.until = 6}},
            {"transA", 0},
            {"transB", 0},
        },
    .types = {{"T", {{1, kFloats}, {9, kInt32s}, {13, kBf16}}}},
    .infer = infer_gemm,
    .reference = run_gemm,
    .up = {{6, 7, step_drop_broadcast}},
    .down = {{11, 9, step_zero_addend}},
};

}  // namespace tombolo::ops
