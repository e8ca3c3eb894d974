#include "ops/infer_helpers.h"
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
};

}  // namespace tombolo::ops
