// tombolo ops: the operators that Tombolo knows, by version.

#include "cli/coverage.h"
#include "cli/verbs.h"
#include "formats/pytorch/aten/table.h"
#include "ops/operators_json.h"
#include "ops/registry.h"

namespace tombolo::cli {

namespace {

/// What an importer maps, from its own table.
Result<int> list_importer(const std::string& format, Console& console) {
  if (format != "pytorch")
    return usage_error("there is no table of operators for format \"" + format + "\"")
        .with_help("formats: pytorch");
  const auto rows = pytorch::all_rows();
  if (console.json) {
    std::string text = "{\"format\":\"pytorch\",\"operators\":[";
    for (size_t i = 0; i < rows.size(); ++i) {
      text += i == 0 ? "\"" : ",\"";
      // Schemas hold quotation marks only as apostrophes.
      text += std::string(rows[i]->schema) + "\"";
    }
    console.print(text + "]}\n");
    return kYes;
  }
  for (const pytorch::Row* row : rows) console.print(std::string(row->schema) + "\n");
  console.print(std::to_string(rows.size()) +
                " overloads; in-place forms (name_) follow from them\n");
  return kYes;
}

Result<int> run_ops(const Args& args, Console& console) {
  if (args.flag("coverage")) return print_coverage(console, args.positional("NAME"));
  if (const auto format = args.get("from")) return list_importer(std::string(*format), console);
  if (console.json) {
    console.print(operators_json());
    return kYes;
  }
  const std::string wanted = args.positional("NAME");
  bool found = false;
  for (const OpDecl* op : all_operators()) {
    const std::string_view name = op->name, domain = op->domain;
    if (!wanted.empty() && name != wanted) continue;
    found = true;
    std::string line(domain.empty() ? "ai.onnx" : domain);
    line += "  " + std::string(name) + "  versions";
    for (const OpVersion& version : versions_of(*op))
      line += " " + std::to_string(version.since) + (version.deprecated ? " (deprecated)" : "");
    line += op->reference != nullptr ? "" : "  [no kernel]";
    console.print(line + "\n    " + std::string(std::string_view(op->doc)) + "\n");
  }
  if (found) return kYes;
  return usage_error("there is no operator \"" + wanted + "\"");
}

}  // namespace

const Verb ops_verb = {
    .name = "ops",
    .summary = "list the operators, their versions, types and attributes",
    .description =
        "With --json every (operator, version) with inputs, outputs, attributes and types. With "
        "--coverage every type of every version is run and compared with the same model in a wide "
        "type; exit 1 if one does not run.",
    .positionals = {{"NAME", "one operator", false}},
    .options = {{"coverage", "", "",
                 "run each version with each type; Markdown, or JSON with --json"},
                {"from", "", "FORMAT", "what the importer of this format maps (pytorch)"}},
    .examples = {"tombolo ops Conv", "tombolo ops --json", "tombolo ops --coverage Cast",
                 "tombolo ops --from pytorch"},
    .run = run_ops,
};

}  // namespace tombolo::cli
