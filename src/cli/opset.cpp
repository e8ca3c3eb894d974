// tombolo opset MODEL N OUT: the same model in another operator set.

#include "cli/open.h"
#include "cli/verbs.h"
#include "passes/retarget.h"

namespace tombolo::cli {

namespace {

constexpr int64_t kMostVersions = 1 << 20;

Result<int> number(std::string_view what, std::string_view text) {
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > kMostVersions)
      return usage_error(std::string(what) + " must be a number, not \"" + std::string(text) +
                         "\"");
    value = value * 10 + (c - '0');
  }
  if (text.empty() || value == 0) return usage_error(std::string(what) + " must be at least 1");
  return static_cast<int>(value);
}

Result<int> run_opset(const Args& args, Console& console) {
  TRY(int opset, number("N", args.positional("N")));
  std::vector<OpsetTarget> targets = {{"", opset}};
  if (auto ml = args.get("ml")) {
    TRY(int version, number("--ml", *ml));
    targets.push_back({"ai.onnx.ml", version});
  }
  TRY(std::string out, output_path(args));
  if (out.empty()) return usage_error("opset needs OUT").with_help("tombolo opset MODEL N OUT");
  TRY(std::unique_ptr<Model> model, open_model(args));
  TRY(const Conversion done, retarget(model, targets));
  if (auto ir = args.get("ir")) {
    TRY(int version, number("--ir", *ir));
    if (version < model->ir_version)
      return unsupported("the model needs IR version " + std::to_string(model->ir_version));
    if (version > kNewestIrVersion)
      return unsupported("the newest known IR version is " + std::to_string(kNewestIrVersion));
    model->ir_version = version;
    model->has_ir_version = true;
  }
  ExportOptions options;
  if (out == "-") options.to = "onnx";
  CHECK_OK(save_model(*model, out, options));
  if (console.json && out != "-")
    console.print("{\"opset\":" + std::to_string(opset) +
                  ",\"steps\":" + std::to_string(done.steps) + "}\n");
  return kYes;
}

}  // namespace

const Verb opset_verb = {
    .name = "opset",
    .summary = "bring a model to another operator set",
    .description =
        "Every node is rewritten where its meaning changed between the versions, upwards and "
        "downwards; what an older set lacks is said in the operators that it has. What operator "
        "set N cannot say is listed, and nothing is written (exit code 4).",
    .positionals = {{"MODEL", "a model of any format that can be read"},
                    {"N", "the ai.onnx operator set to reach"},
                    {"OUT", "the file to write", false}},
    .options = load_options({
        {"output", "o", "OUT", "the same as the third positional", "", false, Completes::kFile},
        {"ml", "", "N", "the ai.onnx.ml operator set to reach (default: as it is)"},
        {"ir", "", "N", "the IR version to declare (default: as it is, or the least that N needs)"},
    }),
    .examples = {"tombolo opset old.onnx 28 new.onnx", "tombolo opset new.onnx 17 old.onnx"},
    .run = run_opset,
};

}  // namespace tombolo::cli
