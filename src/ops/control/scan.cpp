#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_scan(InferContext& context) {
  const Graph* body = context.attributes.get_graph("body");
  if (body == nullptr) return ok();
  // Version 8 has sequence_lens first and a batch axis in front of everything.
  const size_t skip = context.opset < 9 ? 1 : 0;
  const auto scans = context.attributes.get_int("num_scan_inputs", 0);
  const size_t given = context.input_count() > skip ? context.input_count() - skip : 0;
  if (scans < 1 || static_cast<size_t>(scans) > given)
    return context.error("num_scan_inputs is " + std::to_string(scans) + ", but there are " +
                         std::to_string(given) + " inputs");
  const size_t states = given - static_cast<size_t>(scans);
  if (body->inputs().size() != given)
    return context.error("body has " + std::to_string(body->inputs().size()) +
                         " inputs, but Scan has " + std::to_string(given));
  if (body->outputs().size() < states || context.outputs.size() > body->outputs().size())
    return context.error("body has " + std::to_string(body->outputs().size()) + " outputs, for " +
                         std::to_string(states) + " states and a node with " +
                         std::to_string(context.outputs.size()) + " outputs");
  const auto axes = context.attributes.get_ints("scan_input_axes");
  const auto output_axes = context.attributes.get_ints("scan_output_axes");
  std::vector<InferType> inputs(given);
  SymDim length, batch;
  for (size_t i = 0; i < given; ++i) {
    InferType type = context.input(i + skip);
    if (type.shape && skip == 1) {
      if (type.shape->empty()) return context.error("inputs need a batch axis");
      if (batch.is_unknown()) batch = (*type.shape)[0];
      type.shape->erase(type.shape->begin());
    }
    if (i >= states && type.shape) {
      const size_t k = i - states;
      TRY(const size_t axis, checked_axis(context, skip == 0 && k < axes.size() ? axes[k] : 0,
                                          type.shape->size(), "scan_input_axes"));
      TRY(length, unify_dims(context, length, (*type.shape)[axis], "lengths of the scan inputs"));
      type.shape->erase(type.shape->begin() + static_cast<std::ptrdiff_t>(axis));
    }
    inputs[i] = std::move(type);
  }
  std::vector<InferType> outputs;
  for (int round = 0; round < 3; ++round) {
    TRY(outputs, context.host.infer_graph(*body, inputs));
    bool settled = true;
    for (size_t i = 0; i < states; ++i) {
      InferType& state = inputs[i];
      if (!state.shape) continue;
      const auto& next = outputs[i].shape;
      if (!next || next->size() != state.shape->size()) {
        state.shape.reset();
        settled = false;
        continue;
      }
      for (size_t k = 0; k < next->size(); ++k)
        if (!(*state.shape)[k].is_unknown() && !(*state.shape)[k].equals((*next)[k])) {
          (*state.shape)[k] = SymDim();
          settled = false;
        }
    }
    if (settled) break;
    if (round == 1)
      for (size_t i = 0; i < states; ++i) inputs[i].shape.reset();
  }
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    InferType type = i < states ? inputs[i] : outputs[i];
    if (i < states && type.elem == DType::kUndefined) type.elem = outputs[i].elem;
    if (type.kind == Type::Kind::kNone) continue;
    if (i >= states && type.shape) {
      const size_t k = i - states;
      TRY(const size_t axis,
          checked_axis(context, skip == 0 && k < output_axes.size() ? output_axes[k] : 0,
                       type.shape->size() + 1, "scan_output_axes"));
      type.shape->insert(type.shape->begin() + static_cast<std::ptrdiff_t>(axis), length);
    }
    if (skip == 1 && type.shape) type.shape->insert(type.shape->begin(), batch);
    context.set_output(i, std::move(type));
  }
  return ok();
}
}  // namespace

OPERATOR(Scan) = {
    .name = "Scan",
    .doc = "runs a subgraph over the slices of its inputs, carrying states",
    .versions = {8, 9, 11, 16, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"sequence_lens", "I", kOptional, {.until = 8}},
            {"initial_state_and_scan_inputs", "V", kVariadic, {}, 1, kMixed},
        },
    .outputs = {{"final_state_and_scan_outputs", "V", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"body", required(Attr::kGraph)},
            {"directions", Attr::kInts, {.until = 8}},
            {"num_scan_inputs", required(Attr::kInt)},
            {"scan_input_axes", Attr::kInts, {.since = 9}},
            {"scan_input_directions", Attr::kInts, {.since = 9}},
            {"scan_output_axes", Attr::kInts, {.since = 9}},
            {"scan_output_directions", Attr::kInts, {.since = 9}},
        },
    .types =
        {
            {"I", {{8, kI64}}, {.until = 8}},
            {"V",
             {{8, kAll},
              {16, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
        },
    .determinism = Determinism::kBySubgraph,
    .infer = infer_scan,
};

}  // namespace tombolo::ops
