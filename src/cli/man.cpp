// tombolo man [VERB]: manual pages, written from the verb rows.

#include "cli/verbs.h"
#include "tombolo/version.h"

namespace tombolo::cli {

namespace {

/// Text for troff: backslashes and leading dots are syntax, hyphens must stay hyphens.
std::string troff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_start = c == '\n';
  }
  return out;
}

std::string option_entry(const Option& option) {
  std::string out = ".TP\n\\fB";
  if (!option.short_name.empty()) out += "\\-" + std::string(option.short_name) + "\\fR, \\fB";
  out += "\\-\\-" + troff(option.name) + "\\fR";
  if (!option.value.empty()) out += " \\fI" + troff(option.value) + "\\fR";
  out += "\n" + troff(option.help);
  if (!option.choices.empty()) out += " (" + troff(option.choices) + ")";
  if (!option.default_text.empty()) out += ". Default: " + troff(option.default_text);
  return out + "\n";
}

std::string exit_status() {
  return ".SH EXIT STATUS\n"
         ".TP\n0\nyes, done\n.TP\n1\nthe answer is no: invalid model, outputs differ, conformance "
         "failed\n"
         ".TP\n2\nusage\n.TP\n3\ncannot read or parse\n.TP\n4\nunsupported operator, type, version "
         "or feature\n"
         ".TP\n5\nfailed while running\n.TP\n6\nresources: memory, disk, time "
         "limit\n.TP\n130\ninterrupted\n";
}

std::string heading(std::string_view title, std::string_view summary) {
  return ".TH " + std::string(title) + " 1 \"\" \"tombolo " TOMBOLO_VERSION "\"\n.SH NAME\n" +
         std::string(title) + " \\- " + troff(summary) + "\n";
}

std::string verb_page(const Verb& verb) {
  std::string out = heading("tombolo-" + std::string(verb.name), verb.summary);
  out += ".SH SYNOPSIS\n\\fBtombolo " + std::string(verb.name) + "\\fR";
  for (const Positional& positional : verb.positionals)
    out += std::string(" ") + (positional.required ? "" : "[") + "\\fI" + troff(positional.name) +
           "\\fR" + (positional.repeats ? "..." : "") + (positional.required ? "" : "]");
  out += " [\\fIoptions\\fR]\n";
  if (!verb.description.empty()) out += ".SH DESCRIPTION\n" + troff(verb.description) + "\n";
  if (!verb.positionals.empty()) {
    out += ".SH ARGUMENTS\n";
    for (const Positional& positional : verb.positionals)
      out += ".TP\n\\fI" + troff(positional.name) + "\\fR\n" + troff(positional.help) + "\n";
  }
  out += ".SH OPTIONS\n";
  for (const Option& option : verb.options) out += option_entry(option);
  for (const Option& option : common_options()) out += option_entry(option);
  if (!verb.examples.empty()) {
    out += ".SH EXAMPLES\n";
    for (std::string_view example : verb.examples) out += ".nf\n" + troff(example) + "\n.fi\n";
  }
  return out + exit_status() + ".SH SEE ALSO\n.BR tombolo (1)\n";
}

std::string main_page() {
  std::string out =
      heading("tombolo", "one native toolkit for neural-network models in the ONNX format");
  out += ".SH SYNOPSIS\n\\fBtombolo\\fR \\fIVERB\\fR \\fIMODEL\\fR [\\fIoptions\\fR]\n.SH VERBS\n";
  for (const Verb& verb : verbs())
    out += ".TP\n.BR tombolo\\-" + std::string(verb.name) + " (1)\n" + troff(verb.summary) + "\n";
  out += ".SH OPTIONS\n";
  for (const Option& option : common_options()) out += option_entry(option);
  out +=
      ".SH ENVIRONMENT\nEvery option that takes a value has a twin: TOMBOLO_THREADS for "
      "\\-\\-threads, and so on.\n";
  return out + exit_status();
}

Result<int> run_man(const Args& args, Console& console) {
  const std::string name = args.positional("VERB");
  if (args.flag("list")) {
    for (const Verb& verb : verbs()) console.print(std::string(verb.name) + "\n");
    return kYes;
  }
  if (name.empty()) {
    console.print(main_page());
    return kYes;
  }
  for (const Verb& verb : verbs())
    if (verb.name == name) {
      console.print(verb_page(verb));
      return kYes;
    }
  return usage_error("there is no verb \"" + name + "\"");
}

}  // namespace

const Verb man_verb = {
    .name = "man",
    .summary = "print the manual page of tombolo or of a verb",
    .description = "",
    .positionals = {{"VERB", "which verb", false}},
    .options = {{"list", "", "", "list the verbs that have a page"}},
    .examples = {"tombolo man run | man -l -"},
    .run = run_man,
};

}  // namespace tombolo::cli
