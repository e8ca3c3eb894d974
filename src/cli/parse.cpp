// tombolo parse FILE OUT.onnx: ONNX text or JSON into a model; the inverse of tombolo print.

#include "cli/open.h"
#include "cli/verbs.h"

namespace tombolo::cli {

namespace {

Result<int> run_parse(const Args& args, Console&) {
  TRY(std::string out, output_path(args));
  if (out.empty()) return usage_error("parse needs OUT");
  TRY(std::unique_ptr<Model> model, open_model(args));
  ExportOptions options;
  options.keep_external = true;
  if (out == "-") options.to = "onnx";
  CHECK_OK(save_model(*model, out, options));
  return kYes;
}

}  // namespace

const Verb parse_verb = {
    .name = "parse",
    .summary = "turn ONNX text or JSON into a model",
    .description =
        "Text and JSON are told apart by content. The model is not checked: see `tombolo check`.",
    .positionals = {{"MODEL", "a file of ONNX text or JSON; - for standard input"},
                    {"OUT", "the .onnx file to write", false}},
    .options = load_options(
        {{"output", "o", "OUT", "the same as the second positional", "", false, Completes::kFile}}),
    .examples = {"tombolo parse model.onnxtxt model.onnx"},
    .run = run_parse,
};

}  // namespace tombolo::cli
