// tombolo weights MODEL CHECKPOINT: puts the tensors of a checkpoint into a model.

#include <algorithm>
#include <map>
#include <set>

#include "cli/open.h"
#include "cli/verbs.h"

namespace tombolo::cli {

namespace {

/// A line of a rules file: OLD -> NEW, where * in both stands for the same text.
struct Rule {
  std::string from, to;
};

Result<std::vector<Rule>> read_rules(const std::string& text) {
  std::vector<Rule> rules;
  std::string lines = text;
  // A file, or rules as they stand: "a.*=b.*,c=d".
  if (text.find('=') == std::string::npos) {
    TRY(MappedFile file, MappedFile::open(text));
    lines = std::string(file.text());
  } else {
    std::replace(lines.begin(), lines.end(), ',', '\n');
  }
  size_t number = 0;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    std::string line = lines.substr(at, end - at);
    at = end + 1;
    ++number;
    std::erase_if(line,
                  [](char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; });
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0)
      return usage_error("line " + std::to_string(number) + " of the rules is not OLD=NEW: \"" +
                         line + "\"");
    Rule rule{line.substr(0, equals), line.substr(equals + 1)};
    const auto stars = [](const std::string& side) {
      return std::count(side.begin(), side.end(), '*');
    };
    if (stars(rule.from) > 1 || stars(rule.to) > stars(rule.from))
      return usage_error("a rule has one * at most, on both sides: \"" + line + "\"");
    rules.push_back(std::move(rule));
  }
  return rules;
}

/// The name that the model has for a tensor of the checkpoint; the first rule that fits decides.
/// An empty one leaves the tensor out.
std::string renamed(const std::string& name, const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    const size_t star = rule.from.find('*');
    if (star == std::string::npos) {
      if (name == rule.from) return rule.to;
      continue;
    }
    const std::string head = rule.from.substr(0, star), tail = rule.from.substr(star + 1);
    if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail))
      continue;
    const std::string middle = name.substr(head.size(), name.size() - head.size() - tail.size());
    std::string result = rule.to;
    if (const size_t at = result.find('*'); at != std::string::npos) result.replace(at, 1, middle);
    return result;
  }
  return name;
}

std::string shape_text(DType dtype, std::span<const int64_t> dims) {
  std::string text(name_of(dtype));
  text += "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(dims[i]);
  return text + "]";
}

Result<int> run_weights(const Args& args, Console& console) {
  const std::string out = args.get("output").value_or("");
  TRY(std::unique_ptr<Model> model, open_model(args));
  const std::string path = args.positional("CHECKPOINT");
  auto opened = load_model(path);
  if (!opened.ok()) return std::move(opened).error().at(path);
  const Model& checkpoint = **opened;
  if (model->graph == nullptr || checkpoint.graph == nullptr)
    return parse_error("a model without a graph");
  std::vector<Rule> rules;
  if (auto map = args.get("map")) {
    TRY(rules, read_rules(*map));
  }

  std::map<std::string, Value*> wanted;
  for (Value* value : model->graph->initializers()) wanted[std::string(value->name())] = value;
  std::set<std::string> filled;
  std::vector<std::string> problems;
  std::vector<std::pair<Value*, const Value*>> pairs;
  for (const Value* value : checkpoint.graph->initializers()) {
    const std::string source(value->name());
    const std::string name = renamed(source, rules);
    if (name.empty()) continue;
    const auto target = wanted.find(name);
    const std::string called =
        "\"" + source + "\"" + (name == source ? "" : " (as \"" + name + "\")");
    if (target == wanted.end()) {
      // A counter that training alone reads.
      if (name.ends_with("num_batches_tracked")) continue;
      problems.push_back("the model has no weight for " + called);
      continue;
    }
    const Constant &old = *target->second->initializer(), &fresh = *value->initializer();
    if (old.dtype() != fresh.dtype() ||
        !std::equal(old.dims.begin(), old.dims.end(), fresh.dims.begin(), fresh.dims.end())) {
      problems.push_back(called + " is " + shape_text(fresh.dtype(), fresh.dims) +
                         ", the model needs " + shape_text(old.dtype(), old.dims));
      continue;
    }
    if (!filled.insert(name).second) {
      problems.push_back("two tensors for the weight \"" + name + "\"");
      continue;
    }
    pairs.emplace_back(target->second, value);
  }
  std::vector<std::string> untouched;
  for (const auto& [name, value] : wanted)
    if (!filled.contains(name)) untouched.push_back(name);
  if (args.flag("all"))
    for (const std::string& name : untouched)
      problems.push_back("the checkpoint has nothing for \"" + name + "\"");
  if (pairs.empty() && problems.empty()) problems.push_back("no tensor of the checkpoint fits");

  if (console.json) {
    std::string text = "{\"set\":" + std::to_string(pairs.size()) +
                       ",\"kept\":" + std::to_string(untouched.size()) + ",\"problems\":[";
    for (size_t i = 0; i < problems.size(); ++i)
      text += (i == 0 ? "" : ",") + json_quote(problems[i]);
    console.print(text + "]}\n");
  } else {
    for (const std::string& problem : problems) console.print(problem + "\n");
  }
  if (!problems.empty()) {
    console.message(std::to_string(problems.size()) + " problems; nothing is written\n");
    return kNo;
  }
  for (const auto& [target, source] : pairs) {
    TRY(Tensor tensor, source->initializer()->value(checkpoint.storage_ptr()));
    model->graph->set_initializer(target,
                                  Constant::from_tensor(tensor, target->name(), model->storage()));
  }
  if (!out.empty()) CHECK_OK(save_model(*model, out));
  if (!console.json)
    console.print(std::to_string(pairs.size()) + " weights " + (out.empty() ? "fit" : "set") +
                  ", " + std::to_string(untouched.size()) + " kept\n");
  return kYes;
}

}  // namespace

const Verb weights_verb = {
    .name = "weights",
    .summary = "put the tensors of a checkpoint into a model, checking every name and shape",
    .description =
        "Every tensor of CHECKPOINT (PyTorch, safetensors, .npz, or another model's weights) must "
        "have a weight of its name, type and shape in MODEL; all that do not fit are listed, and "
        "nothing is written then (exit code 1). Without OUT only the comparison is made. --map "
        "renames first: a file with lines OLD=NEW, or OLD=NEW,OLD=NEW; one * stands for any text "
        "and is carried over; an empty NEW leaves tensors out.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"},
                    {"CHECKPOINT", "the tensors: a checkpoint of any format that can be read"}},
    .options =
        load_options({{"map", "", "RULES", "how names of the checkpoint become names of the model",
                       "", false, Completes::kFile},
                      {"all", "", "", "every weight of the model must be set"},
                      {"output", "o", "OUT", "the model to write", "", false, Completes::kFile}}),
    .examples = {"tombolo weights net.onnx trained.pt -o trained.onnx",
                 "tombolo weights net.onnx model.safetensors --map 'model.*=*' -o out.onnx"},
    .run = run_weights,
};

}  // namespace tombolo::cli
