#include "ops/tombolo/elementwise.h"

#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"
#include "ops/tombolo/loose.h"

namespace tombolo::ops {

namespace {

constexpr ElementwiseOp kOps[] = {
    {"Add", 2},
    {"Sub", 2},
    {"Mul", 2},
    {"Div", 2},
    {"Max", 2},
    {"Min", 2},
    {"Pow", 2},
    {"PRelu", 2},
    {"Abs"},
    {"Neg"},
    {"Relu"},
    {"Clip"},
    {"Floor"},
    {"Ceil"},
    {"Round"},
    {"Sqrt"},
    {"Reciprocal"},
    {"LeakyRelu", 1, "alpha", {}, 0.01f},
    {"HardSigmoid", 1, "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish"},
    {"ThresholdedRelu", 1, "alpha", {}, 1},
    {"Softsign"},
    {"Shrink", 1, "lambd", "bias", 0.5f, 0},
    {"Exp"},
    {"Sigmoid"},
    {"Tanh"},
    {"Erf"},
    {"Gelu"},
    {"GeluTanh"},
    {"Swish", 1, "alpha", {}, 1},
    {"Softplus"},
    {"Mish"},
    {"Elu", 1, "alpha", {}, 1},
    {"Selu", 1, "alpha", "gamma", 1.67326319217681884765625f, 1.05070102214813232421875f},
    {"Celu", 1, "alpha", {}, 1},
    {"Log"},
    {"Sin"},
    {"Cos"},
    {"Atan"},
};

Result<RunValue> run_step(KernelContext& context, const ElementwiseStep& step,
                          std::span<const RunValue* const> args) {
  const RunValue* inputs[3] = {args[0], step.op->operands > 1 ? args[1] : nullptr, nullptr};
  RunValue bounds[2];
  size_t count = static_cast<size_t>(step.op->operands);
  if (step.op->name == "Clip") {
    for (size_t i = 0; i < 2; ++i) {
      TRY(Tensor bound, context.allocate(DType::kFloat32, {}));
      bound.set_double(0, static_cast<double>(step.params[i]));
      bounds[i] = RunValue(std::move(bound));
      inputs[i + 1] = &bounds[i];
    }
    count = 3;
  }
  const bool tanh_form = step.op->name == "GeluTanh";
  Loose loose(tanh_form ? Text("Gelu") : Text(step.op->name), count);
  if (tanh_form) loose.node.set_string("approximate", "tanh");
  if (!step.op->first.empty()) loose.node.set_float(step.op->first, step.params[0]);
  if (!step.op->second.empty()) loose.node.set_float(step.op->second, step.params[1]);
  return run_as(context, loose.node, std::span<const RunValue* const>(inputs, count));
}

Status run_elementwise(KernelContext& context) {
  const size_t count = context.inputs.size();
  const std::vector<ElementwiseStep> steps = read_elementwise(context.attributes, count);
  if (steps.empty()) return context.error("the steps of Elementwise are wrong");
  std::vector<RunValue> results;
  for (const ElementwiseStep& step : steps) {
    const RunValue* args[2] = {};
    for (int i = 0; i < step.op->operands; ++i) {
      const auto from = static_cast<size_t>(step.args[i]);
      if (from < count && !context.has_input(from)) return context.error("an input is missing");
      args[i] = from < count ? &context.value(from) : &results[from - count];
    }
    TRY(RunValue result, run_step(context, step, args));
    results.push_back(std::move(result));
  }
  // Inputs that only a smaller part of the steps reads spread with it.
  context.set_output(0, std::move(results.back()));
  return ok();
}

Status infer_elementwise(InferContext& context) {
  SymShape shape;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const SymShape* own = context.shape(i);
    if (own == nullptr) return ok();
    auto both = broadcast(shape, *own);
    if (!both) return std::move(both).error();
    shape = *std::move(both);
  }
  set_shape(context, 0, std::move(shape));
  return ok();
}

}  // namespace

const ElementwiseOp* find_elementwise(std::string_view name) {
  const auto found = std::find_if(std::begin(kOps), std::end(kOps),
                                  [&](const ElementwiseOp& op) { return op.name == name; });
  return found == std::end(kOps) ? nullptr : found;
}

std::vector<ElementwiseStep> read_elementwise(const AttributeReader& attributes, size_t inputs) {
  std::vector<ElementwiseStep> steps;
  Text names = attributes.get_string("ops", "");
  const auto args = attributes.get_ints("args");
  const auto params = attributes.get_floats("params");
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size()), at = steps.size();
    const ElementwiseOp* op = find_elementwise(names.substr(0, end));
    if (op == nullptr || args.size() < 2 * at + 2 || params.size() < 2 * at + 2) return {};
    ElementwiseStep step{op, {-1, -1}, {params[2 * at], params[2 * at + 1]}};
    for (int i = 0; i < op->operands; ++i) {
      const int64_t from = args[2 * at + static_cast<size_t>(i)];
      if (from < 0 || static_cast<uint64_t>(from) >= inputs + at) return {};
      step.args[i] = static_cast<int>(from);
    }
    steps.push_back(step);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return steps;
}

OPERATOR(TomboloElementwise) = {
    .name = "Elementwise",
    .domain = "ai.tombolo",
    .doc = "several operators of single elements, one after another",
    .versions = {1},
    .inputs = {{"X", "T", kVariadic}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"args", required(Attr::kInts)},
            {"ops", required(Attr::kString)},
            {"params", required(Attr::kFloats)},
        },
    .types = {{"T", {{1, kF32}}}},
    .infer = infer_elementwise,
    .reference = run_elementwise,
};

}  // namespace tombolo::ops
