// tombolo completion SHELL: completion scripts, written from the verb rows.

#include "cli/verbs.h"

namespace tombolo::cli {

namespace {

std::string option_words(const Verb& verb) {
  std::string words;
  auto add = [&](const Option& option) {
    if (!option.short_name.empty()) words += "-" + std::string(option.short_name) + " ";
    words += "--" + std::string(option.name) + " ";
  };
  for (const Option& option : verb.options) add(option);
  for (const Option& option : common_options()) add(option);
  return words + "--help";
}

std::string spaced(std::string_view choices) {
  std::string text(choices);
  for (char& c : text)
    if (c == '|') c = ' ';
  return text;
}

std::string bash_script() {
  std::string names, cases, values;
  for (const Verb& verb : verbs()) {
    names += std::string(verb.name) + " ";
    cases += "    " + std::string(verb.name) + ") words=\"" + option_words(verb) + "\" ;;\n";
  }
  auto add_choices = [&](const Option& option) {
    if (!option.choices.empty() &&
        values.find("--" + std::string(option.name) + ")") == std::string::npos)
      values += "    --" + std::string(option.name) + ") COMPREPLY=($(compgen -W \"" +
                spaced(option.choices) + "\" -- \"$cur\")); return ;;\n";
  };
  for (const Verb& verb : verbs())
    for (const Option& option : verb.options) add_choices(option);
  for (const Option& option : common_options()) add_choices(option);
  return "# bash completion for tombolo; load with: source <(tombolo completion bash)\n"
         "_tombolo() {\n"
         "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" "
         "words=\"\"\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         names +
         "--help --version\" -- \"$cur\")); return\n"
         "  fi\n"
         "  case \"$prev\" in\n" +
         values +
         "  esac\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         cases +
         "  esac\n"
         "  case \"$cur\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _tombolo tombolo\n";
}

/// Text inside single quotes of a shell script.
std::string quoted(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string zsh_script() {
  std::string list, cases;
  // In _arguments' specs, brackets and colons are syntax.
  auto escaped = [](std::string_view text) {
    std::string out;
    for (char c : text) {
      if (c == '[' || c == ']' || c == ':') out += '\\';
      out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return out;
  };
  for (const Verb& verb : verbs()) {
    list += "    '" + std::string(verb.name) + ":" + escaped(verb.summary) + "'\n";
    cases += "    " + std::string(verb.name) + ") _arguments";
    auto add = [&](const Option& option) {
      cases += std::string(" '") + (option.repeats ? "*" : "") + "--" + std::string(option.name) +
               "[" + escaped(option.help) + "]";
      if (!option.value.empty())
        cases += ":" + escaped(option.value) + ":" +
                 (!option.choices.empty()                   ? "(" + spaced(option.choices) + ")"
                  : option.completes == Completes::kNothing ? ""
                                                            : "_files");
      cases += "'";
    };
    for (const Option& option : verb.options) add(option);
    for (const Option& option : common_options()) add(option);
    cases += " '*:file:_files' ;;\n";
  }
  return "#compdef tombolo\n"
         "# zsh completion for tombolo; load with: source <(tombolo completion zsh)\n"
         "_tombolo() {\n"
         "  local -a verbs=(\n" +
         list +
         "  )\n"
         "  if (( CURRENT == 2 )); then _describe 'verb' verbs; return; fi\n"
         "  local verb=${words[2]}\n"
         "  shift words; (( CURRENT-- ))\n"
         "  case $verb in\n" +
         cases +
         "  esac\n"
         "}\n"
         "compdef _tombolo tombolo\n";
}

std::string fish_script() {
  std::string out = "# fish completion for tombolo; load with: tombolo completion fish | source\n";
  for (const Verb& verb : verbs()) {
    out += "complete -c tombolo -n __fish_use_subcommand -a " + std::string(verb.name) + " -d '" +
           quoted(verb.summary) + "'\n";
    auto add = [&](const Option& option) {
      out += "complete -c tombolo -n '__fish_seen_subcommand_from " + std::string(verb.name) +
             "' -l " + std::string(option.name);
      if (!option.short_name.empty()) out += " -s " + std::string(option.short_name);
      if (!option.value.empty()) out += " -r";
      if (!option.choices.empty()) out += " -f -a '" + spaced(option.choices) + "'";
      out += " -d '" + quoted(option.help) + "'\n";
    };
    for (const Option& option : verb.options) add(option);
    for (const Option& option : common_options()) add(option);
  }
  return out;
}

Result<int> run_completion(const Args& args, Console& console) {
  const std::string shell = args.positional("SHELL");
  if (shell == "bash")
    console.print(bash_script());
  else if (shell == "zsh")
    console.print(zsh_script());
  else if (shell == "fish")
    console.print(fish_script());
  else
    return usage_error("no completion for \"" + shell + "\"").with_help("shells: bash, zsh, fish");
  return kYes;
}

}  // namespace

const Verb completion_verb = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .description = "",
    .positionals = {{"SHELL", "bash, zsh or fish"}},
    .options = {},
    .examples = {"source <(tombolo completion bash)"},
    .run = run_completion,
};

}  // namespace tombolo::cli
