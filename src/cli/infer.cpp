// tombolo infer MODEL [OUT]: types and shapes of every value.

#include "analysis/infer.h"
#include "cli/diagnostics.h"
#include "cli/open.h"
#include "cli/verbs.h"

namespace tombolo::cli {

namespace {

Result<int> run_infer(const Args& args, Console& console) {
  TRY(std::string out, output_path(args));
  TRY(std::unique_ptr<Model> model, open_model(args));
  Diagnostics diagnostics;
  infer_types(*model, diagnostics);
  if (!out.empty()) {
    ExportOptions options;
    options.keep_external = true;
    CHECK_OK(save_model(*model, out, options));
  }
  if (console.json) {
    std::string values;
    if (model->graph)
      for_each_graph(*model->graph, [&](Graph& graph) {
        const auto add = [&](const Value* value) {
          if (value == nullptr || value->type() == nullptr) return;
          values += (values.empty() ? "" : ",") + std::string("{\"name\":") +
                    json_quote(value->name()) +
                    ",\"type\":" + json_quote(to_string(*value->type())) + "}";
        };
        for (const Value* input : graph.inputs()) add(input);
        for (const Node* node : graph.nodes())
          for (const Value* output : node->outputs()) add(output);
      });
    console.print("{\"values\":[" + values + "],\"diagnostics\":" + diagnostics_json(diagnostics) +
                  "}\n");
  } else {
    for (const Diagnostic& diagnostic : diagnostics.list()) console.diagnostic(diagnostic);
    if (out.empty() && model->graph)
      for_each_graph(*model->graph, [&](Graph& graph) {
        for (const Node* node : graph.nodes())
          for (const Value* value : node->outputs())
            if (value != nullptr)
              console.print(std::string(value->name()) + ": " +
                            (value->type() != nullptr ? to_string(*value->type()) : "?") + "\n");
      });
  }
  return diagnostics.errors() == 0 ? kYes : kNo;
}

}  // namespace

const Verb infer_verb = {
    .name = "infer",
    .summary = "infer types and shapes, with symbolic dimensions as expressions",
    .description =
        "Writes OUT with value_info for every value; without OUT prints each value and its type. "
        "Dimensions are numbers or expressions over the inputs' named dimensions: + - * // %, "
        "min(a, b), max(a, b), with floor semantics as in Python. Exit code 1 when a node "
        "contradicts its inputs.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"},
                    {"OUT", "file to write", false}},
    .options = load_options(
        {{"output", "o", "OUT", "the same as the second positional", "", false, Completes::kFile}}),
    .examples = {"tombolo infer model.onnx", "tombolo infer model.onnx inferred.onnx"},
    .run = run_infer,
};

}  // namespace tombolo::cli
