#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {

Status run_prelu(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* slope, context.input(1));
  // Before operator set 7 a slope of one dimension belongs to the channels (axis 1).
  Tensor aligned = *slope;
  if (context.opset < 7 && slope->rank() == 1 && slope->dim(0) != 1 && x->rank() > 1) {
    Dims dims;
    dims.resize(static_cast<uint32_t>(x->rank() - 1), 1);
    dims[0] = slope->dim(0);
    aligned = slope->reshaped(dims);
  }
  const Tensor* const inputs[] = {x, &aligned};
  auto op = [](auto a, auto b) {
    using T = decltype(a);
    return a < T{0} ? wrap_mul(a, b) : a;
  };
  CHECK_OK(run_rows(context, inputs,
                    binary_rows<kFamilyNumbers, false, decltype(op)>(Bools::kRefuse), &op));
  if (context.outputs[0].tensor().dims() != x->dims())
    return context.error("slope " + to_string(*slope) + " does not broadcast to X, " +
                         to_string(*x));
  return ok();
}

}  // namespace

namespace {

/// The slope stood for channels (axis 1); now it broadcasts from the last axis.
Status step_slope_by_channel(StepContext& step) {
  const std::optional<size_t> slope = step.rank(1);
  if (slope && (*slope != 1 || step.dim(1, 0) == 1)) return ok();
  const std::optional<size_t> rank = step.rank(0);
  if (!slope || !rank) return step.cannot("the rank of an input is not known");
  if (*rank <= 2) return ok();
  std::vector<int64_t> axes;
  for (size_t axis = 1; axis + 1 < *rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  Node& unsqueeze = step.before("Unsqueeze", {step.node.input(1)}, "slope");
  unsqueeze.set_ints("axes", axes);
  step.node.set_input(1, unsqueeze.output(0));
  return ok();
}

}  // namespace

OPERATOR(PRelu) = {
    .name = "PRelu",
    .doc = "x, or slope * x below zero, the slope being a tensor",
    .versions = {1, 6, 7, 9, 16},
    .inputs =
        {
            {"X", "T"},
            {"slope", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {9, kInt32s}, {16, kBf16}}}},
    .functions = {{.versions = {.since = 16}, .opset = 16, .text = R"(
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
negative = Less (X, zero)
scaled = Mul (slope, X)
Y = Where (negative, scaled, X)
)"}},

    .infer = infer_unary,
    .reference = run_prelu,
    .up = {{6, 7, step_slope_by_channel}},
};

}  // namespace tombolo::ops
