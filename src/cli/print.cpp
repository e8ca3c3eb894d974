// tombolo print MODEL [OUT]: a model as ONNX text or JSON; tombolo parse is its inverse.

#include "cli/open.h"
#include "cli/verbs.h"

namespace tombolo::cli {

namespace {

Result<int> run_print(const Args& args, Console& console) {
  TRY(std::string out, output_path(args));
  TRY(std::unique_ptr<Model> model, open_model(args));
  ExportOptions options;
  // Under --json standard output is one JSON document, as of every verb.
  const bool json = out.empty() ? console.json : out.ends_with(".json");
  options.to = args.get("format").value_or(json ? "json" : "text");
  options.keep_external = true;
  CHECK_OK(save_model(*model, out.empty() ? "-" : out, options));
  return kYes;
}

}  // namespace

const Verb print_verb = {
    .name = "print",
    .summary = "print a model as ONNX text or JSON, losslessly",
    .description = "External data stay references. `tombolo parse` is the inverse.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"},
                    {"OUT", "file to write (default: standard output)", false}},
    .options = load_options(
        {{"format", "", "FORMAT", "text or json (default: by OUT and --json, else text)", "", false,
          Completes::kNothing, "text|json"},
         {"output", "o", "OUT", "the same as the second positional", "", false, Completes::kFile}}),
    .examples = {"tombolo print model.onnx", "tombolo print model.onnx model.json --format json"},
    .run = run_print,
};

}  // namespace tombolo::cli
