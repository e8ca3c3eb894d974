#include "cli/open.h"

#include <cstdio>

namespace tombolo::cli {

std::vector<Option> load_options(std::vector<Option> more) {
  std::vector<Option> options = {
      {"from", "", "FORMAT", "read MODEL as this format (default: by its content)"},
      {"custom-op-domain", "", "NAME",
       "keep operators of the user's own (PyTorch) as calls of this domain"},
      {"weights", "", "FILE",
       "weights beside the graph, where the habit of the format does not find them", "", false,
       Completes::kFile},
  };
  bool own_sample = false;
  for (Option& option : more) {
    own_sample = own_sample || option.name == "sample";
    options.push_back(option);
  }
  if (!own_sample)
    options.push_back({"sample", "", "FILE.npz",
                       "example inputs, where MODEL keeps no types and ranks of inputs "
                       "(TorchScript)",
                       "", false, Completes::kFile});
  return options;
}

namespace {
std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) names.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}
}  // namespace

Result<std::unique_ptr<Model>> open_model(const Args& args, bool headers_only,
                                          std::vector<NamedTensor>* stored_sample) {
  LoadOptions options;
  options.headers_only = headers_only;
  options.from = args.get("from").value_or("");
  options.weights = args.get("weights").value_or("");
  options.custom_op_domain = args.get("custom-op-domain").value_or("");
  options.stored_sample = stored_sample;
  options.sample = args.get("sample").value_or("");
  if (options.sample.empty()) options.sample = args.get("inputs").value_or("");
  options.signature = args.get("signature").value_or("");
  if (auto names = args.get("input-names")) options.input_names = split_names(*names);
  if (auto names = args.get("output-names")) options.output_names = split_names(*names);
  for (const std::string& setting : args.all("set")) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return usage_error("--set takes NAME=VALUE, not \"" + setting + "\"");
    options.set[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  const std::string path = args.positional("MODEL");
  auto model = load_model(path, options);
  if (!model) return std::move(model).error().at(path);
  return model;
}

Result<std::string> output_path(const Args& args) {
  const std::string positional = args.positional("OUT");
  const std::string option = args.get("output").value_or("");
  if (!positional.empty() && !option.empty())
    return usage_error("OUT is given twice: \"" + positional + "\" and -o \"" + option + "\"");
  return positional.empty() ? option : positional;
}

std::string human_bytes(uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

}  // namespace tombolo::cli
