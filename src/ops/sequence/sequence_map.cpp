#include "ops/function_text.h"
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

/// A Loop over the elements of the first sequence; what the body gives is gathered.
Status body_of_sequence_map(FunctionContext& context) {
  const Graph* graph = context.attributes.get_graph("body");
  if (graph == nullptr) return runtime_error("the attribute body is missing");
  context.opset = latest_opset("");
  const size_t outputs = context.output_wanted.size();
  if (graph->outputs().size() != outputs)
    return runtime_error("body has " + std::to_string(graph->outputs().size()) +
                         " outputs, the node " + std::to_string(outputs));
  context.line("count = SequenceLength (input_sequence)");
  std::string gathered, results, taken, given;
  for (size_t k = 0; k < outputs; ++k) {
    const Value* value = graph->outputs()[k].value;
    if (value == nullptr || value->type() == nullptr || !value->type()->is_tensor())
      return unsupported("SequenceMap: the type of output " + std::to_string(k) +
                         " of the body is not declared");
    const std::string number = std::to_string(k);
    const DType type = value->type()->dtype();
    context.line("empty_" + number +
                 " = SequenceEmpty <dtype = " + std::to_string(static_cast<int>(type)) + "> ()");
    gathered += ", empty_" + number;
    if (k > 0) results += ", ";
    results += function_name(context.version.outputs, k);
    taken += ", seq(" + std::string(name_of(type)) + ") so_far_" + number;
    given += ", seq(" + std::string(name_of(type)) + ") longer_" + number;
  }
  // The Loop's body, as text of its own.
  FunctionContext inner{context.version,     context.opset,          context.attributes,
                        context.input_types, context.output_wanted,  {},
                        context.captured,    context.sequence_inputs};
  inner.line("kept = Identity (going_on)");
  std::vector<std::string> inputs;
  for (size_t i = 0; i < graph->inputs().size(); ++i) {
    const std::string outside = function_name(context.version.inputs, i);
    inputs.push_back(outside);
    // A tensor goes to every call as it is.
    if (!context.is_sequence(i)) continue;
    inputs.back() = "item_" + std::to_string(i);
    inner.line(inputs.back() + " = SequenceAt (" + outside + ", step)");
  }
  TRY(const std::vector<std::string> made, inner.inline_graph(*graph, "body_", inputs));
  for (size_t k = 0; k < outputs; ++k) {
    const std::string number = std::to_string(k);
    inner.line("longer_" + number + " = SequenceInsert (so_far_" + number + ", " + made[k] + ")");
  }
  context.captured = std::move(inner.captured);
  context.line(results + " = Loop <body: graph = each_element (int64 step, bool going_on" + taken +
               ") => (bool kept" + given + ") {");
  context.body += inner.body;
  context.line("}> (count, \"\"" + gathered + ")");
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
    .functions = {{.opset = 17, .builder = body_of_sequence_map}},
    .determinism = Determinism::kBySubgraph,
    .infer = infer_sequence_map,
    .reference = run_sequence_map,
};

}  // namespace tombolo::ops
