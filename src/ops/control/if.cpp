#include "ops/infer_helpers.h"
#include "ops/kernels/subgraph.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
/// What holds for both.
InferType common(const InferType& a, const InferType& b) {
  if (a.kind != b.kind) return {};
  InferType out = a;
  if (a.elem != b.elem) out.elem = DType::kUndefined;
  if (a.shape && b.shape && a.shape->size() == b.shape->size()) {
    for (size_t i = 0; i < a.shape->size(); ++i)
      if (!(*a.shape)[i].equals((*b.shape)[i])) (*out.shape)[i] = SymDim();
  } else {
    out.shape.reset();
  }
  if (a.element && b.element)
    out.element = std::make_shared<const InferType>(common(*a.element, *b.element));
  else
    out.element.reset();
  return out;
}

Status infer_if(InferContext& context) {
  const Graph* then_branch = context.attributes.get_graph("then_branch");
  const Graph* else_branch = context.attributes.get_graph("else_branch");
  if (then_branch == nullptr || else_branch == nullptr) return ok();
  for (const Graph* branch : {then_branch, else_branch})
    if (branch->outputs().size() != context.outputs.size())
      return context.error("a branch has " + std::to_string(branch->outputs().size()) +
                           " outputs, but the node has " + std::to_string(context.outputs.size()));
  TRY(const std::vector<InferType> then_types, context.host.infer_graph(*then_branch, {}));
  TRY(const std::vector<InferType> else_types, context.host.infer_graph(*else_branch, {}));
  // A constant condition decides; the other branch never runs.
  const auto condition = scalar_of(context, 0);
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    const InferType& a = then_types[i];
    const InferType& b = else_types[i];
    if (a.is_tensor() && b.is_tensor() && a.elem != DType::kUndefined &&
        b.elem != DType::kUndefined && a.elem != b.elem)
      return context.error("output " + std::to_string(i) + " is " + std::string(name_of(a.elem)) +
                           " from then_branch, but " + std::string(name_of(b.elem)) +
                           " from else_branch");
    if (condition && condition->is_value())
      context.set_output(i, condition->value() != 0 ? a : b);
    else
      context.set_output(i, common(a, b));
  }
  return ok();
}
Status run_if(KernelContext& context) {
  if (!context.has_input(0)) return context.error("the condition is missing");
  TRY(const bool holds, bool_of(context, context.value(0), "the condition"));
  TRY(const Graph* branch, body_graph(context, holds ? "then_branch" : "else_branch", 0));
  TRY(auto results, run_body(context, *branch, {}, context.output_count()));
  for (size_t k = 0; k < results.size(); ++k) context.set_output(k, std::move(results[k]));
  return ok();
}

}  // namespace

OPERATOR(If) = {
    .name = "If",
    .doc = "runs one of two subgraphs",
    .versions = {1, 11, 13, 16, 19, 21, 23, 24, 25},
    .inputs = {{"cond", "B"}},
    .outputs = {{"outputs", "V", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"else_branch", required(Attr::kGraph)},
            {"then_branch", required(Attr::kGraph)},
        },
    .types =
        {
            {"V",
             {{1, kAll},
              {13, seq_of(kAll)},
              {16, kBf16 | seq_of(kBf16) | optional_of(kAll | kBf16 | seq_of(kAll | kBf16))},
              {19, kFp8 | seq_of(kFp8) | optional_of(kFp8)},
              {21, kInt4 | seq_of(kInt4) | optional_of(kInt4)},
              {23, kFp4 | seq_of(kFp4) | optional_of(kFp4)},
              {24, kE8m0 | seq_of(kE8m0) | optional_of(kE8m0)},
              {25, kInt2 | seq_of(kInt2) | optional_of(kInt2)}}},
            {"B", {{1, kBool}}},
        },
    .determinism = Determinism::kBySubgraph,
    .infer = infer_if,
    .reference = run_if,
};

}  // namespace tombolo::ops
