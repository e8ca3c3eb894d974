#include "ops/infer_helpers.h"
#include "ops/kernels/sequence.h"
#include "ops/kernels/subgraph.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_sequence_map(InferContext& context) {
  const Graph* body = context.attributes.get_graph("body");
  if (body == nullptr) return ok();
  std::vector<InferType> inputs;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const InferType& type = context.input(i);
    inputs.push_back(type.kind == Type::Kind::kSequence && type.element ? *type.element
                     : type.kind == Type::Kind::kSequence               ? InferType()
                                                                        : type);
  }
  TRY(std::vector<InferType> outputs, context.host.infer_graph(*body, inputs));
  if (outputs.size() < context.outputs.size())
    return context.error("body has " + std::to_string(outputs.size()) +
                         " outputs, but the node has " + std::to_string(context.outputs.size()));
  for (size_t i = 0; i < context.outputs.size(); ++i)
    if (outputs[i].kind != Type::Kind::kNone)
      context.set_output(i, InferType::sequence(std::move(outputs[i])));
  return ok();
}
Status run_sequence_map(KernelContext& context) {
  const auto count = static_cast<int64_t>(context.input_count());
  TRY(const Graph* body, body_graph(context, "body", count));
  TRY(const SequenceValue* first, sequence_input(context, 0));
  std::vector<SequenceValue> results(context.output_count());
  for (size_t i = 0; i < first->items.size(); ++i) {
    std::vector<RunValue> inputs;
    for (size_t k = 0; k < context.input_count(); ++k) {
      if (!context.has_input(k)) return context.error("input " + std::to_string(k) + " is missing");
      const RunValue& value = context.value(k);
      if (value.kind() != RunValue::Kind::kSequence) {
        inputs.push_back(value);
        continue;
      }
      const std::vector<RunValue>& items = value.sequence().items;
      if (items.size() != first->items.size())
        return context.error("sequence " + std::to_string(k) + " has " +
                             std::to_string(items.size()) + " elements, sequence 0 has " +
                             std::to_string(first->items.size()));
      inputs.push_back(items[i]);
    }
    TRY(auto outputs, run_body(context, *body, std::move(inputs), results.size()));
    for (size_t k = 0; k < results.size(); ++k) {
      TRY(Tensor item, tensor_of(context, outputs[k], "an output of the body"));
      results[k].elem = item.dtype();
      results[k].items.emplace_back(std::move(item));
    }
  }
  for (size_t k = 0; k < results.size(); ++k) {
    if (first->items.empty()) {
      TRY(results[k].elem, output_type(context, *body, k));
    }
    context.set_output(k, std::move(results[k]));
  }
  return ok();
}

}  // namespace

OPERATOR(SequenceMap) = {
    .name = "SequenceMap",
    .doc = "applies a subgraph to each element of sequences",
    .versions = {17},
    .inputs =
        {
            {"input_sequence", "S"},
            {"additional_inputs", "V", kVariadic, {}, 0, kMixed},
        },
    .outputs = {{"out_sequence", "S", kVariadic, {}, 1, kMixed}},
    .attributes = {{"body", required(Attr::kGraph)}},
    .types =
        {
            {"S", {{17, seq_of(kAll)}}},
            {"V", {{17, kAll | seq_of(kAll)}}},
        },
    .functions = {{.opset = 17}},
    .determinism = Determinism::kBySubgraph,
    .infer = infer_sequence_map,
    .reference = run_sequence_map,
};

}  // namespace tombolo::ops
