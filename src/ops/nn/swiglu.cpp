#include <cmath>

#include "ops/infer_generic.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status infer_swiglu(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  bool same = a == nullptr || b == nullptr || a->size() == b->size();
  for (size_t i = 0; same && a != nullptr && b != nullptr && i < a->size(); ++i) {
    const auto left = (*a)[i].constant(), right = (*b)[i].constant();
    same = !left || !right || *left == *right;
  }
  if (!same)
    return context.error("A and B must have one shape, but they are " + shape_to_string(*a) +
                         " and " + shape_to_string(*b));
  return infer_unary(context);
}

Status run_swiglu(KernelContext& context) {
  TRY(const Tensor* gate, context.input(0));
  TRY(const Tensor* linear, context.input(1));
  if (!(gate->dims() == linear->dims()))
    return context.error("A and B must have one shape, are " + to_string(*gate) + " and " +
                         to_string(*linear));
  const float alpha = context.attributes.get_float("alpha", 1.0f);
  return zip<kFamilyFloats>(context,
                            [alpha](auto a, auto b) { return a / (1 + std::exp(-alpha * a)) * b; });
}

}  // namespace

OPERATOR(SwiGLU) = {
    .name = "SwiGLU",
    .doc = "swish(A) * B, the gate of gated feed-forward layers",
    .versions = {28},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes = {{"alpha", 1.0f}},
    .types = {{"T", {{28, kFloats | kBf16}}}},
    .functions = {{.opset = 28, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, A)
scaled = Mul (alpha, A)
gate = Sigmoid (scaled)
swish = Mul (A, gate)
Y = Mul (swish, B)
)"}},
    .infer = infer_swiglu,
    .reference = run_swiglu,
};

}  // namespace tombolo::ops
