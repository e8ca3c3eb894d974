// tombolo info MODEL: what a model is, without reading its weights.

#include <algorithm>
#include <map>

#include "cli/open.h"
#include "cli/verbs.h"
#include "formats/weights/weights_model.h"

namespace tombolo::cli {

namespace {

struct Counts {
  std::map<std::string, size_t> operators;
  size_t nodes = 0, tensors = 0;
  uint64_t parameters = 0, bytes = 0, external_bytes = 0;

  void constant(const Constant& constant) {
    ++tensors;
    const int64_t count = element_count(constant.dims);
    if (count < 0) return;
    parameters += static_cast<uint64_t>(count);
    uint64_t size = packed_bytes(constant.dtype(), static_cast<uint64_t>(count)).value_or(0);
    for (Text text : constant.strings) size += text.size();
    (constant.is_external() ? external_bytes : bytes) += size;
  }
  void graph(Graph& root) {
    for_each_graph(root, [&](Graph& graph) {
      for (const Value* value : graph.initializers()) constant(*value->initializer());
      for (const Value* value : graph.sparse_initializers())
        constant(value->sparse_initializer()->values);
      for (const Node* node : graph.nodes()) {
        ++nodes;
        const Text domain = canonical_domain(node->domain());
        ++operators[(domain.empty() ? "" : std::string(domain) + ".") +
                    std::string(node->op_type())];
        for (const Attribute& attribute : node->attributes())
          if (const Constant* tensor = attribute.tensor()) constant(*tensor);
      }
    });
  }
};

std::string type_text(const Type* type) { return type != nullptr ? to_string(*type) : "?"; }

Result<int> run_info(const Args& args, Console& console) {
  TRY(std::string format, format_of(args.positional("MODEL")));
  TRY(std::unique_ptr<Model> model, open_model(args, true));
  Counts counts;
  if (model->graph) counts.graph(*model->graph);
  for (const auto& function : model->functions) counts.graph(function->body);
  std::vector<std::pair<std::string, size_t>> operators(counts.operators.begin(),
                                                        counts.operators.end());
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });

  struct Port {
    std::string name, type;
    uint64_t bytes = 0;
  };
  // A checkpoint: its tensors are all there is to say.
  const bool checkpoint = is_weights_only(*model);
  std::vector<Port> inputs, outputs;
  if (model->graph) {
    for (const Value* input : model->graph->inputs())
      if (!input->is_initializer())
        inputs.push_back({std::string(input->name()), type_text(input->type())});
    for (const GraphOutput& output : model->graph->outputs()) {
      const bool own = output.declared && present(output.declared->name);
      outputs.push_back(
          {std::string(own ? output.declared->name : output.value->name()),
           type_text(output.declared ? output.declared->type : output.value->type())});
      if (const Constant* constant = output.value->initializer()) {
        const int64_t count = element_count(constant->dims);
        outputs.back().bytes =
            packed_bytes(constant->dtype(), count < 0 ? 0 : static_cast<uint64_t>(count))
                .value_or(0);
      }
    }
  }
  if (console.json) {
    std::string out = "{\"format\":" + json_quote(format) +
                      ",\"ir_version\":" + std::to_string(model->ir_version) +
                      ",\"producer\":" + json_quote(model->producer_name) +
                      ",\"producer_version\":" + json_quote(model->producer_version) +
                      ",\"graph\":" + json_quote(model->graph ? model->graph->name : Text("")) +
                      ",\"opsets\":{";
    for (size_t i = 0; i < model->opset_imports.size(); ++i)
      out += (i == 0 ? "" : ",") +
             json_quote(model->opset_imports[i].domain.empty() ? Text("ai.onnx")
                                                               : model->opset_imports[i].domain) +
             ":" + std::to_string(model->opset_imports[i].version);
    auto ports = [&](const std::vector<Port>& list) {
      std::string text;
      for (const Port& port : list)
        text += (text.empty() ? "" : ",") + std::string("{\"name\":") + json_quote(port.name) +
                ",\"type\":" + json_quote(port.type) +
                (checkpoint ? ",\"bytes\":" + std::to_string(port.bytes) : "") + "}";
      return "[" + text + "]";
    };
    out += "},\"inputs\":" + ports(inputs) + ",\"outputs\":" + ports(outputs) +
           ",\"nodes\":" + std::to_string(counts.nodes) + ",\"operators\":{";
    for (size_t i = 0; i < operators.size(); ++i)
      out += (i == 0 ? "" : ",") + json_quote(operators[i].first) + ":" +
             std::to_string(operators[i].second);
    out += "},\"functions\":" + std::to_string(model->functions.size()) +
           ",\"tensors\":" + std::to_string(counts.tensors) +
           ",\"parameters\":" + std::to_string(counts.parameters) +
           ",\"bytes\":" + std::to_string(counts.bytes + counts.external_bytes) +
           ",\"external_bytes\":" + std::to_string(counts.external_bytes) + ",\"metadata\":{";
    for (size_t i = 0; i < model->metadata.size(); ++i)
      out += (i == 0 ? "" : ",") + json_quote(model->metadata[i].key) + ":" +
             json_quote(model->metadata[i].value);
    console.print(out + "}}\n");
    return kYes;
  }
  std::string out = "format      " + format + ", IR " + std::to_string(model->ir_version);
  for (const OpsetImport& import : model->opset_imports)
    out += std::string(", ") + (import.domain.empty() ? "ai.onnx" : std::string(import.domain)) +
           " " + std::to_string(import.version);
  out += "\n";
  if (!model->producer_name.empty())
    out += "producer    " + std::string(model->producer_name) + " " +
           std::string(model->producer_version) + "\n";
  if (model->graph && !model->graph->name.empty())
    out += "graph       " + std::string(model->graph->name) + "\n";
  for (const Port& port : inputs) out += "input       " + port.name + "  " + port.type + "\n";
  for (const Port& port : outputs)
    out += checkpoint ? "tensor      " + port.name + "  " + port.type + "  " +
                            human_bytes(port.bytes) + "\n"
                      : "output      " + port.name + "  " + port.type + "\n";
  out += "parameters  " + std::to_string(counts.parameters) + " in " +
         std::to_string(counts.tensors) + " tensors, " +
         human_bytes(counts.bytes + counts.external_bytes);
  if (counts.external_bytes != 0)
    out += " (" + human_bytes(counts.external_bytes) + " in external files)";
  out += "\n";
  if (!checkpoint) out += "nodes       " + std::to_string(counts.nodes);
  if (!model->functions.empty()) out += ", functions " + std::to_string(model->functions.size());
  if (!checkpoint) out += "\n";
  for (const auto& [name, count] : operators)
    out += "            " + std::to_string(count) + "  " + name + "\n";
  for (const StringEntry& entry : model->metadata)
    out += "metadata    " + std::string(entry.key) + " = " +
           std::string(entry.value.substr(0, 200)) + "\n";
  console.print(out);
  return kYes;
}

}  // namespace

const Verb info_verb = {
    .name = "info",
    .summary = "say what a model is: format, inputs, outputs, operators, parameters",
    .description = "Never reads the weights.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"}},
    .options = load_options(),
    .examples = {"tombolo info model.onnx", "tombolo info --json model.keras"},
    .run = run_info,
};

}  // namespace tombolo::cli
