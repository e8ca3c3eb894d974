// tombolo convert IN OUT: any readable format into any writable one.

#include <algorithm>
#include <cstdint>

#include "cli/open.h"
#include "cli/verbs.h"
#include "passes/retarget.h"

namespace tombolo::cli {

namespace {

Result<ExportOptions> export_options(const Args& args) {
  ExportOptions options;
  options.to = args.get("to").value_or("");
  const std::string external = args.get("external").value_or("auto");
  TRY(int64_t shard, args.get_int("shard-size", 0));
  options.data.data = shard != 0           ? SaveOptions::Data::kSharded
                      : external == "one"  ? SaveOptions::Data::kOneFile
                      : external == "each" ? SaveOptions::Data::kPerTensor
                      : external == "none" ? SaveOptions::Data::kEmbed
                                           : SaveOptions::Data::kAuto;
  if (shard != 0) options.data.shard_bytes = static_cast<uint64_t>(shard) << 20;
  options.data.checksum = args.flag("checksum");
  return options;
}

Result<int> run_convert(const Args& args, Console& console) {
  TRY(std::string out, output_path(args));
  if (out.empty()) return usage_error("convert needs OUT").with_help("tombolo convert IN OUT");
  TRY(ExportOptions options, export_options(args));
  if (out == "-" && options.to.empty()) options.to = "onnx";
  TRY(std::string format, format_of(args.positional("MODEL")));
  TRY(std::unique_ptr<Model> model, open_model(args));
  TRY(int64_t opset, args.get_int("opset", 0));
  if (opset != 0 && opset != model->opset()) {
    const OpsetTarget target{"", static_cast<int>(std::min<int64_t>(opset, INT32_MAX))};
    CHECK_OK(retarget(model, {&target, 1}));
  }
  CHECK_OK(save_model(*model, out, options));
  if (out != "-" && console.verbosity > 0) console.message("wrote " + out + "\n");
  if (console.json && out != "-")
    console.print("{\"format\":" + json_quote(format) + ",\"output\":" + json_quote(out) + "}\n");
  return kYes;
}

}  // namespace

const Verb convert_verb = {
    .name = "convert",
    .summary = "convert a model of any readable format, by default to ONNX",
    .description =
        "Formats are told by content and by OUT's extension. An ONNX file is taken as it was "
        "written: without "
        "options nothing changes. Weights are embedded below 2 GB, else they lie in OUT.data "
        "beside OUT.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"},
                    {"OUT", "the file to write", false}},
    .options = load_options({
        {"output", "o", "OUT", "the same as the second positional", "", false, Completes::kFile},
        {"to", "", "FORMAT", "write this format (default: by OUT's extension)"},
        {"opset", "", "N", "operator-set version of the result"},
        {"signature", "", "S", "which entry point, where the source has several"},
        {"input-names", "", "A,B", "inputs of the result, in this order; cuts the graph there"},
        {"output-names", "", "C,D", "outputs of the result, in this order; cuts the graph there"},
        {"set", "", "NAME=VALUE", "value of an argument that is no tensor", "", true},
        {"external", "", "WHERE",
         "weights: auto, none (embedded), one (file), each (a file a tensor)", "auto", false,
         Completes::kNothing, "auto|none|one|each"},
        {"shard-size", "", "MIB", "split external weights into files of at most this size"},
        {"checksum", "", "", "write the SHA-1 of each external tensor"},
    }),
    .examples = {"tombolo convert digits.keras digits.onnx",
                 "tombolo convert big.onnx split.onnx --external one"},
    .run = run_convert,
};

}  // namespace tombolo::cli
