// tombolo check MODEL: everything that makes it invalid, not the first thing.

#include "analysis/checker.h"
#include "cli/diagnostics.h"
#include "cli/open.h"
#include "cli/verbs.h"

namespace tombolo::cli {

namespace {

Result<int> run_check(const Args& args, Console& console) {
  TRY(std::unique_ptr<Model> model, open_model(args));
  CheckOptions options;
  options.infer = !args.flag("no-infer");
  options.checksums = args.flag("checksums");
  Diagnostics diagnostics;
  check(*model, options, diagnostics);
  const bool valid = diagnostics.errors() == 0;
  if (console.json) {
    console.print(std::string("{\"valid\":") + (valid ? "true" : "false") +
                  ",\"diagnostics\":" + diagnostics_json(diagnostics) + "}\n");
    return valid ? kYes : kNo;
  }
  for (const Diagnostic& diagnostic : diagnostics.list()) console.diagnostic(diagnostic);
  if (diagnostics.dropped() != 0)
    console.message("... and " + std::to_string(diagnostics.dropped()) + " more\n");
  const auto counted = [](size_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  console.print((valid ? "valid" : "invalid") + std::string(": ") +
                counted(diagnostics.errors(), "error") + ", " +
                counted(diagnostics.warnings(), "warning") + "\n");
  return valid ? kYes : kNo;
}

}  // namespace

const Verb check_verb = {
    .name = "check",
    .summary = "check that a model is valid ONNX; report everything that is wrong",
    .description =
        "Structure, names, operators, attributes, tensors, external files, functions, types and "
        "shapes. Exit code 0 when valid (warnings allowed), 1 when invalid, 3 when unreadable.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"}},
    .options =
        load_options({{"no-infer", "", "", "leave out types and shapes"},
                      {"checksums", "", "", "compare external data with their recorded SHA-1"}}),
    .examples = {"tombolo check model.onnx", "tombolo check --json model.onnx"},
    .run = run_check,
};

}  // namespace tombolo::cli
