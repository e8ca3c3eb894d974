// tombolo ops: the operators that Tombolo knows, by version.

#include "cli/coverage.h"
#include "cli/verbs.h"
#include "ops/operators_json.h"
#include "ops/registry.h"

namespace tombolo::cli {

namespace {

Result<int> run(const Args& args, Console& console) {
  if (args.flag("coverage")) return print_coverage(console, args.positional("NAME"));
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
                 "run each version with each type; Markdown, or JSON with --json"}},
    .examples = {"tombolo ops Conv", "tombolo ops --json", "tombolo ops --coverage Cast"},
    .run = run,
};

}  // namespace tombolo::cli
