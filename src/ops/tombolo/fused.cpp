// Operators of ai.tombolo, which the optimiser writes for the runtime alone (never into a file): a
// convolution or a product, and what is done to each element before it is stored. Here they are run
// as the operators of the standard that they stand for.

#include <algorithm>
#include <string>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/kernels/compute.h"
#include "ops/registry.h"
#include "ops/schema.h"
#include "ops/tombolo/loose.h"

namespace tombolo::ops {

Loose::Loose(Text op, size_t inputs)
    : graph(std::make_shared<Storage>()), node(*graph.add_node(op)) {
  for (size_t i = 0; i < inputs; ++i) node.add_input(graph.add_input("x"));
  node.add_output("y");
}

Result<RunValue> run_as(KernelContext& context, const Node& node,
                        std::span<const RunValue* const> inputs) {
  const OpDecl* op = find_operator("", node.op_type());
  if (op == nullptr || op->reference == nullptr)
    return context.error("no operator " + std::string(node.op_type()));
  std::vector<RunValue> outputs(1);
  KernelContext inner{node,         latest_opset(""), inputs, outputs, AttributeReader(node),
                      context.host, nullptr};
  CHECK_OK(op->reference(inner));
  return std::move(outputs[0]);
}

namespace {

Result<RunValue> binary(KernelContext& context, Text op, const RunValue& a, const RunValue& b) {
  const Loose loose(op, 2);
  const RunValue* const inputs[] = {&a, &b};
  return run_as(context, loose.node, inputs);
}

/// What `activation` names, with its parameters as the operator's attributes.
Result<RunValue> activate(KernelContext& context, RunValue value) {
  std::string name(context.attributes.get_string("activation", ""));
  if (name.empty()) return value;
  const auto params = context.attributes.get_floats("activation_params");
  const RunValue* inputs[3] = {&value, nullptr, nullptr};
  if (name == "Clip") {
    const Loose loose("Clip", 3);
    RunValue bounds[2];
    for (size_t i = 0; i < 2 && i < params.size(); ++i) {
      TRY(Tensor bound, context.allocate(value.tensor().dtype(), {}));
      bound.set_double(0, params[i]);
      bounds[i] = RunValue(std::move(bound));
      inputs[i + 1] = &bounds[i];
    }
    return run_as(context, loose.node, inputs);
  }
  const bool tanh_form = name == "GeluTanh";
  Loose loose(tanh_form ? Text("Gelu") : Text(name), 1);
  if (tanh_form) loose.node.set_string("approximate", "tanh");
  if (!params.empty()) loose.node.set_float("alpha", params[0]);
  if (params.size() > 1) loose.node.set_float("beta", params[1]);
  return run_as(context, loose.node, std::span(inputs).first(1));
}

/// Adds input 3 and applies the activation: output 0.
Status finish(KernelContext& context, RunValue value) {
  if (context.has_input(3)) {
    TRY(value, binary(context, "Add", value, context.value(3)));
  }
  TRY(value, activate(context, std::move(value)));
  context.set_output(0, std::move(value));
  return ok();
}

Status infer_conv_like(InferContext& context) { return find_operator("", "Conv")->infer(context); }
/// Input 1, which may be of fewer bits than input 0, in the type of that.
Result<RunValue> weights(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  if (w->dtype() == x->dtype()) return RunValue(*w);
  TRY(Tensor wide, converted(context, *w, x->dtype()));
  return RunValue(std::move(wide));
}

Status run_conv_like(KernelContext& context) {
  std::vector<RunValue> outputs(1);
  TRY(const RunValue w, weights(context));
  std::vector<const RunValue*> inputs(
      context.inputs.begin(),
      context.inputs.begin() + static_cast<ptrdiff_t>(std::min<size_t>(context.inputs.size(), 3)));
  inputs[1] = &w;
  KernelContext inner{context.node,       latest_opset(""), inputs,         outputs,
                      context.attributes, context.host,     context.binding};
  CHECK_OK(find_operator("", "Conv")->reference(inner));
  return finish(context, std::move(outputs[0]));
}

/// Whether `perm` names each axis of so many once.
bool orders(std::span<const int64_t> perm, size_t rank) {
  if (perm.size() != rank) return false;
  std::vector<bool> seen(rank);
  for (const int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return false;
    seen[static_cast<size_t>(axis)] = true;
  }
  return std::find(seen.begin(), seen.end(), false) == seen.end();
}

/// The order in which the product reads axes of a side: its perm, then the last two exchanged where
/// the attribute says so.
std::vector<int64_t> order_of(const AttributeReader& attributes, Text perm_name, Text trans,
                              size_t rank) {
  const auto perm = attributes.get_ints(perm_name);
  std::vector<int64_t> order(perm.begin(), perm.end());
  if (order.empty())
    for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  if (attributes.get_int(trans, 0) != 0 && order.size() == rank && rank >= 2)
    std::swap(order[rank - 1], order[rank - 2]);
  return order;
}

/// Axes of `shape` in that order.
std::optional<SymShape> ordered(const SymShape& shape, std::span<const int64_t> order) {
  if (!orders(order, shape.size())) return std::nullopt;
  SymShape out;
  for (const int64_t axis : order) out.push_back(shape[static_cast<size_t>(axis)]);
  return out;
}

Status infer_matmul_like(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  if (a == nullptr || b == nullptr || a->size() < 2 || b->size() < 2) return ok();
  const auto x = ordered(*a, order_of(context.attributes, "perm_a", "transA", a->size()));
  const auto y = ordered(*b, order_of(context.attributes, "perm_b", "transB", b->size()));
  if (!x || !y) return context.error("a perm does not name each axis once");
  auto batch = broadcast(SymShape(x->begin(), x->end() - 2), SymShape(y->begin(), y->end() - 2));
  if (!batch) return std::move(batch).error();
  SymShape out = *batch;
  out.push_back((*x)[x->size() - 2]);
  out.push_back((*y)[y->size() - 1]);
  if (const auto perm = context.attributes.get_ints("perm_y"); !perm.empty()) {
    const auto result = ordered(out, perm);
    if (!result) return context.error("perm_y does not name each axis once");
    out = *result;
  }
  context.set_tensor(0, context.elem(0), std::move(out));
  return ok();
}

/// Transposed, unless `order` is the one that it has.
Result<RunValue> turned(KernelContext& context, const RunValue& value,
                        const std::vector<int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return value;
  if (!orders(order, value.tensor().rank()))
    return context.error("a perm does not name each axis once");
  Loose loose("Transpose", 1);
  loose.node.set_ints("perm", order);
  const RunValue* const inputs[] = {&value};
  return run_as(context, loose.node, inputs);
}
Result<RunValue> side(KernelContext& context, const RunValue& value, Text perm, Text trans) {
  return turned(context, value, order_of(context.attributes, perm, trans, value.tensor().rank()));
}

Status run_matmul_like(KernelContext& context) {
  TRY(const RunValue w, weights(context));
  TRY(const RunValue a, side(context, context.value(0), "perm_a", "transA"));
  TRY(const RunValue b, side(context, w, "perm_b", "transB"));
  TRY(RunValue value, binary(context, "MatMul", a, b));
  const float alpha = context.attributes.get_float("alpha", 1);
  if (alpha != 1) {
    TRY(Tensor factor, context.allocate(value.tensor().dtype(), {}));
    factor.set_double(0, alpha);
    TRY(value, binary(context, "Mul", value, RunValue(std::move(factor))));
  }
  if (context.has_input(2)) {
    TRY(value, binary(context, "Add", value, context.value(2)));
  }
  const auto perm = context.attributes.get_ints("perm_y");
  TRY(value, turned(context, value, {perm.begin(), perm.end()}));
  return finish(context, std::move(value));
}

Status infer_gather_matmul(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  const SymShape* picks = context.shape(2);
  if (a == nullptr || b == nullptr || picks == nullptr) return ok();
  if (a->size() != 3 || b->size() != 3 || picks->size() != 1)
    return context.error("A and B must have a rank of 3, I of 1");
  auto out = broadcast(SymShape{(*a)[0]}, *picks);
  if (!out) return std::move(out).error();
  out->push_back((*a)[1]);
  out->push_back((*b)[context.attributes.get_int("transB", 0) != 0 ? 1 : 2]);
  context.set_tensor(0, context.elem(0), std::move(*out));
  return ok();
}

Status run_gather_matmul(KernelContext& context) {
  TRY(const RunValue w, weights(context));
  TRY(const RunValue picked, binary(context, "Gather", w, context.value(2)));
  TRY(const RunValue b, side(context, picked, "perm_b", "transB"));
  TRY(RunValue value, binary(context, "MatMul", context.value(0), b));
  context.set_output(0, std::move(value));
  return ok();
}

Status infer_scatter_rows(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* picks = context.shape(1);
  if (picks != nullptr && picks->size() != 1) return context.error("I must have a rank of 1");
  return ok();
}

Status run_scatter_rows(KernelContext& context) {
  TRY(const Tensor* picks, context.input(1));
  TRY(const Tensor* updates, context.input(2));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(updates->rank())));
  const auto at = static_cast<size_t>(axis);
  if (picks->rank() != 1 || picks->dim(0) != updates->dim(at))
    return context.error("I " + to_string(*picks) + " does not fit updates " + to_string(*updates));
  TRY(Tensor wide, context.allocate(DType::kInt64, updates->dims()));
  const int64_t inner = product(updates->dims(), at + 1, updates->rank());
  for (int64_t i = 0; i < wide.size(); ++i)
    wide.data<int64_t>()[i] = picks->get_int64(i / inner % picks->size());
  const RunValue places(std::move(wide));
  Loose loose("ScatterElements", 3);
  loose.node.set_int("axis", axis);
  loose.node.set_string("reduction", context.attributes.get_string("reduction", "none"));
  const RunValue* const inputs[] = {&context.value(0), &places, &context.value(2)};
  TRY(RunValue value, run_as(context, loose.node, inputs));
  context.set_output(0, std::move(value));
  return ok();
}

}  // namespace

OPERATOR(TomboloConv) = {
    .name = "Conv",
    .domain = "ai.tombolo",
    .doc = "Conv, plus Z of the output's shape, then an activation by name",
    .versions = {1},
    .inputs = {{"X", "T"}, {"W", "TW"}, {"B", "T", kOptional}, {"Z", "T", kOptional}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"activation", ""},
            {"activation_params", Attr::kFloats},
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{1, kFloats | kBf16}}}, {"TW", {{1, kFloats | kBf16}}}},
    .infer = infer_conv_like,
    .reference = run_conv_like,
};

OPERATOR(TomboloMatMul) = {
    .name = "MatMul",
    .domain = "ai.tombolo",
    .doc = "alpha A B + bias, plus Z of the output's shape, then an activation by name",
    .versions = {1},
    .inputs = {{"A", "T"}, {"B", "TW"}, {"bias", "T", kOptional}, {"Z", "T", kOptional}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"activation", ""},
            {"activation_params", Attr::kFloats},
            {"alpha", 1.0f},
            {"perm_a", Attr::kInts},
            {"perm_b", Attr::kInts},
            {"perm_y", Attr::kInts},
            {"transA", 0},
            {"transB", 0},
        },
    .types = {{"T", {{1, kFloats | kBf16}}}, {"TW", {{1, kFloats | kBf16}}}},
    .infer = infer_matmul_like,
    .reference = run_matmul_like,
};

// Products with matrices that are picked from a list, as those of experts are.
OPERATOR(TomboloGatherMatMul) = {
    .name = "GatherMatMul",
    .domain = "ai.tombolo",
    .doc = "A[t] times the matrix of B that I[t] names, in the type of A, for each t",
    .versions = {1},
    .inputs = {{"A", "T"}, {"B", "TB"}, {"I", "TI"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"transB", 0}},
    .types = {{"T", {{1, kFloats}}}, {"TB", {{1, kFloats | kBf16}}}, {"TI", {{1, kIndices}}}},
    .infer = infer_gather_matmul,
    .reference = run_gather_matmul,
};

// ScatterElements whose indices are one for each row, as sums over the neighbours in a graph have.
OPERATOR(TomboloScatterRows) = {
    .name = "ScatterRows",
    .domain = "ai.tombolo",
    .doc =
        "a copy of data whose slices along an axis, those that I names, are replaced by or "
        "combined with those of updates",
    .versions = {1},
    .inputs = {{"data", "T"}, {"I", "TI"}, {"updates", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 0}, {"reduction", "none"}},
    .types = {{"T", {{1, kAll | kBf16}}}, {"TI", {{1, kIndices}}}},
    .infer = infer_scatter_rows,
    .reference = run_scatter_rows,
};

}  // namespace tombolo::ops
