// tombolo optimise MODEL OUT: the same model in fewer nodes.

#include <algorithm>
#include <cstdio>

#include "cli/open.h"
#include "cli/tensor_io.h"
#include "cli/verbs.h"
#include "ir/model.h"
#include "passes/pipeline.h"
#include "passes/retarget.h"
#include "runtime/equivalence.h"

namespace tombolo::cli {

namespace {

std::string level_name(int level) {
  return level == kRuntimeLevel ? "runtime" : "O" + std::to_string(level);
}

void list_passes(Console& console) {
  std::string json;
  for (const Pass& pass : all_passes()) {
    if (console.json) {
      json += (json.empty() ? "" : ",") + std::string("{\"name\":") + json_quote(pass.name) +
              ",\"level\":" + json_quote(level_name(pass.level)) +
              ",\"doc\":" + json_quote(pass.doc) + "}";
      continue;
    }
    std::string line(pass.name);
    line.resize(std::max<size_t>(line.size() + 1, 24), ' ');
    std::string level = level_name(pass.level);
    level.resize(std::max<size_t>(level.size() + 1, 9), ' ');
    console.print(line + level + std::string(pass.doc) + "\n");
  }
  if (console.json) console.print("{\"passes\":[" + json + "]}\n");
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<OptimiseOptions> options_of(const Args& args) {
  OptimiseOptions options;
  const std::string level = args.get("level").value_or("O2");
  if (level.size() != 2 || (level[0] != 'O' && level[0] != 'o') || level[1] < '0' || level[1] > '3')
    return usage_error("--level takes O0, O1, O2 or O3, not \"" + level + "\"");
  options.level = level[1] - '0';
  if (auto names = args.get("passes")) options.only = split(*names);
  for (const std::string& name : args.all("disable"))
    for (std::string& one : split(name)) options.disabled.push_back(std::move(one));
  TRY(int64_t growth,
      args.get_int("fold-limit", static_cast<int64_t>(options.limits.fold_growth >> 10)));
  options.limits.fold_growth = static_cast<uint64_t>(growth) << 10;
#ifndef NDEBUG
  options.verify = true;
#endif
  return options;
}

std::string number(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void report(Console& console, const OptimiseReport& done, const Equivalence* same) {
  if (console.json) {
    std::string passes;
    for (const PassResult& one : done.passes)
      passes += (passes.empty() ? "" : ",") + std::string("{\"name\":") +
                json_quote(one.pass->name) + ",\"changes\":" + std::to_string(one.changes) +
                ",\"ms\":" + number(one.milliseconds, "%.3f") + "}";
    std::string verified;
    if (same != nullptr)
      verified = ",\"verify\":{\"equal\":" + std::string(same->equal ? "true" : "false") +
                 ",\"runs\":" + std::to_string(same->runs) +
                 ",\"max_relative\":" + number(same->max_relative, "%.3g") +
                 ",\"difference\":" + json_quote(same->difference) + "}";
    console.print("{\"nodes_before\":" + std::to_string(done.nodes_before) +
                  ",\"nodes_after\":" + std::to_string(done.nodes_after) +
                  ",\"weight_bytes_before\":" + std::to_string(done.weight_bytes_before) +
                  ",\"weight_bytes_after\":" + std::to_string(done.weight_bytes_after) +
                  ",\"opset_before\":" + std::to_string(done.opset_before) + ",\"opset_after\":" +
                  std::to_string(done.opset_after) + ",\"rounds\":" + std::to_string(done.rounds) +
                  ",\"settled\":" + (done.settled ? "true" : "false") + ",\"passes\":[" + passes +
                  "]" + verified + "}\n");
    return;
  }
  std::string text;
  for (const PassResult& one : done.passes) {
    if (one.changes == 0) continue;
    std::string line = "  " + std::string(one.pass->name);
    line.resize(std::max<size_t>(line.size() + 1, 28), ' ');
    text += line + number(static_cast<double>(one.changes), "%6.0f") +
            number(one.milliseconds, "%10.1f ms\n");
  }
  text += "nodes   " + std::to_string(done.nodes_before) + " -> " +
          std::to_string(done.nodes_after) + "\nweights " + human_bytes(done.weight_bytes_before) +
          " -> " + human_bytes(done.weight_bytes_after) + "\nopset   " +
          std::to_string(done.opset_before) + " -> " + std::to_string(done.opset_after) + "\n";
  if (same != nullptr)
    text += same->equal ? "verified on " + std::to_string(same->runs) +
                              " random inputs, largest relative difference " +
                              number(same->max_relative, "%.2g\n")
                        : "NOT the same: " + same->difference + "\n";
  console.message(text);
}

Result<Equivalence> verify(const Args& args, std::unique_ptr<Model> before, const Model& after,
                           int64_t runs) {
  RandomInputOptions random;
  TRY(int64_t seed, args.get_int("seed", 0));
  random.seed = static_cast<uint64_t>(seed);
  for (const std::string& text : args.all("input")) {
    const auto shape = parse_named_shape(text);
    if (!shape) return usage_error("--input takes NAME:1x3x224x224, not \"" + text + "\"");
    random.dims[shape->name] = shape->dims;
  }
  auto original = Session::create(std::move(before));
  if (!original) return std::move(original).error().at("the model before");
  auto optimised = Session::create(clone(after));
  if (!optimised) return std::move(optimised).error().at("the model after");
  return compare_models(**original, **optimised, static_cast<int>(std::min<int64_t>(runs, 1000)),
                        random);
}

Result<int> run_optimise(const Args& args, Console& console) {
  if (args.flag("list")) {
    list_passes(console);
    return kYes;
  }
  TRY(OptimiseOptions options, options_of(args));
  TRY(std::string out, output_path(args));
  if (args.positional("MODEL").empty() || out.empty())
    return usage_error("optimise needs MODEL and OUT").with_help("tombolo optimise MODEL OUT");
  TRY(std::unique_ptr<Model> model, open_model(args));
  TRY(int64_t runs, args.get_int("verify", 0));
  std::unique_ptr<Model> before = runs > 0 ? clone(*model) : nullptr;
  TRY(OptimiseReport done, optimise(*model, options));
  TRY(int64_t opset, args.get_int("opset", 0));
  if (opset != 0 && opset != model->opset()) {
    const OpsetTarget target{"", static_cast<int>(std::min<int64_t>(opset, INT32_MAX))};
    CHECK_OK(retarget(model, {&target, 1}));
    done.opset_after = model->opset();
  }
  Equivalence same;
  if (runs > 0) {
    TRY(same, verify(args, std::move(before), *model, runs));
  }
  if (same.equal) {
    ExportOptions saved;
    if (out == "-") saved.to = "onnx";
    CHECK_OK(save_model(*model, out, saved));
  }
  if (out != "-" || !console.json) report(console, done, runs > 0 ? &same : nullptr);
  return same.equal ? kYes : kNo;
}

}  // namespace

const Verb optimise_verb = {
    .name = "optimise",
    .summary = "write the same model in fewer and larger operators",
    .description =
        "Runs passes until nothing changes. O1 keeps every bit of the outputs: constants and "
        "shapes "
        "are folded, what does nothing or nothing reads goes. O2 (the default) also folds batch "
        "normalisation, scales and biases into weights, cancels transposes, and writes what "
        "exporters spell out as the operators of the standard (LayerNormalization, Gelu, "
        "Attention, "
        "...). O3 may use com.microsoft operators that ONNX Runtime knows. Inputs, outputs and "
        "their "
        "names stay. The operator set is raised only as far as the result needs. docs/passes.md "
        "has "
        "all passes. With --verify nothing is written and the exit code is 1 when outputs differ.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read", false},
                    {"OUT", "the file to write", false}},
    .options = load_options({
        {"output", "o", "OUT", "the same as the second positional", "", false, Completes::kFile},
        {"level", "", "LEVEL", "which passes run", "O2", false, Completes::kNothing, "O0|O1|O2|O3"},
        {"passes", "", "A,B", "run these passes alone, in this order"},
        {"disable", "", "NAME", "do not run this pass", "", true},
        {"list", "", "", "list all passes with their levels"},
        {"verify", "", "N", "compare the outputs before and after on N random inputs"},
        {"input", "", "NAME:DIMS", "size of an input for --verify", "", true},
        {"seed", "", "S", "of the random inputs of --verify"},
        {"opset", "", "N", "operator set of the result (not below what it needs)"},
        {"fold-limit", "", "KIB", "how much folding one node may add to the weights", "1024"},
    }),
    .examples = {"tombolo optimise model.onnx small.onnx",
                 "tombolo optimise model.onnx small.onnx --verify 3 --input x:2x3x224x224",
                 "tombolo optimise --list"},
    .run = run_optimise,
};

}  // namespace tombolo::cli
